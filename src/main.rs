//! The binary: a thin shell over the library.

fn main() {
    use milepost::ops::{open::Request, run};
    use std::sync::Arc;
    let args: Vec<String> = std::env::args().skip(1).collect();
    let request = Request {
        folder: std::env::current_dir().unwrap(),
        workspace: std::env::var("WS").ok().map(Into::into),
        set: args.iter().filter(|a| a.contains('=')).cloned().collect(),
        agents: vec![],
        environment: std::env::vars().collect(),
        today: None,
        disk: milepost::store::disk::Disk::from_setting(
            std::env::var("MILEPOST_STOP_AT").ok().as_deref(),
        ),
        clock: Arc::new(milepost::store::clock::SystemClock),
        version: "0.1.0".into(),
    };
    struct Show;
    impl milepost::run::notice::Observer for Show {
        fn notice(&mut self, n: milepost::run::notice::Notice) {
            eprintln!("{n:?}");
        }
    }
    milepost::steps::command::adopt_orphans();
    let wanted = run::Wanted {
        command: "milepost run".into(),
        force: args.contains(&"-B".to_string()),
        ..Default::default()
    };
    if args.contains(&"plan".to_string()) {
        match milepost::ops::plan::plan(&request, &wanted) {
            Ok(p) => println!("{}", serde_json::to_string_pretty(&p).unwrap()),
            Err(e) => println!("{e}"),
        }
        return;
    }
    let stop = milepost::run::stop::StopFlag::new();
    match run::run(&request, &wanted, &mut Show, &stop) {
        Ok(report) => {
            println!("{}", serde_json::to_string_pretty(&report).unwrap());
            std::process::exit(run::exit_code(&report).into())
        }
        Err(milepost::ops::open::OpsError::Declarations(p)) => {
            println!("{p:?}");
        }
        Err(e) => {
            println!("{e}");
            std::process::exit(1)
        }
    }
}
