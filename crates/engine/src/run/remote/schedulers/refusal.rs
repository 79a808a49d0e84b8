//! Messages of `sbatch` that mean a permanent refusal. Any other failure may pass, such as a limit of submitted jobs or a timeout.

const PARTITION: &str = "check `partition` under [executor.slurm]; `sinfo` lists them";
const ACCOUNT: &str = "check `account` and `options` under [executor.slurm]; `sacctmgr show associations user=$USER` lists yours";
const RESOURCES: &str =
    "ask for less under [resources], or name another `partition` under [executor.slurm]";
const ARRAY: &str =
    "lower `max_array_size` under [executor.slurm]; `scontrol show config` prints MaxArraySize";
const OPTIONS: &str = "check `options` under [executor.slurm]";

/// The texts of errors (Slurm's `slurm_errno.c`, and the option reader of `sbatch`), each with what to do.
const PERMANENT: &[(&str, &str)] = &[
    ("Invalid partition name specified", PARTITION),
    (
        "No partition specified or system default partition",
        PARTITION,
    ),
    ("group not permitted to use this partition", PARTITION),
    ("Requested nodes not in this partition", PARTITION),
    ("Access/permission denied", ACCOUNT),
    ("Invalid account or account/partition combination", ACCOUNT),
    ("Invalid qos specification", ACCOUNT),
    ("Invalid wckey specification", ACCOUNT),
    ("Invalid user id", ACCOUNT),
    ("Invalid group id", ACCOUNT),
    ("More processors requested than permitted", RESOURCES),
    ("Requested node configuration is not available", RESOURCES),
    ("Memory required by task is not available", RESOURCES),
    ("CPU count specification invalid", RESOURCES),
    ("Node count specification invalid", RESOURCES),
    ("Requested time limit is invalid", RESOURCES),
    ("Time limit specification required", RESOURCES),
    ("Invalid job array specification", ARRAY),
    ("Invalid feature specification", OPTIONS),
    ("Invalid license specification", OPTIONS),
    ("Invalid generic resource (gres) specification", OPTIONS),
    ("Invalid Trackable RESource (TRES) specification", OPTIONS),
    ("Invalid node name specified", OPTIONS),
    ("Requested reservation is invalid", OPTIONS),
    ("Access denied to requested reservation", OPTIONS),
    ("unrecognized option", OPTIONS),
    ("Invalid --", OPTIONS),
];

/// Returns what to do about a refusal for good; `None` if a later try may succeed.
pub(super) fn help(printed: &str) -> Option<&'static str> {
    let found = PERMANENT.iter().find(|(text, _)| printed.contains(text));
    found.map(|(_, help)| *help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_never_passes_is_refused_for_good() {
        let failed = "sbatch: error: Batch job submission failed: ";
        for (printed, expected) in [
            ("Invalid partition name specified", Some(PARTITION)),
            (
                "Invalid account or account/partition combination specified",
                Some(ACCOUNT),
            ),
            (
                "User's group not permitted to use this partition",
                Some(PARTITION),
            ),
            (
                "Requested time limit is invalid (missing or exceeds some limit)",
                Some(RESOURCES),
            ),
            ("Invalid job array specification", Some(ARRAY)),
            (
                "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
                None,
            ),
            ("Socket timed out on send/recv operation", None),
            ("Unable to contact slurm controller (connect failure)", None),
            ("Requested partition configuration not available now", None),
            ("Unable to create job record, try again", None),
        ] {
            assert_eq!(help(&format!("{failed}{printed}")), expected, "{printed}");
        }
        assert_eq!(help("sbatch: unrecognized option '--foo'"), Some(OPTIONS));
        assert_eq!(
            help("sbatch: error: Invalid --mem specification"),
            Some(OPTIONS)
        );
    }
}
