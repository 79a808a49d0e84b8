# What the reports show, in one pass over the records: `inputs` gives them one at a time, in the order of the model.
# A part of an assembly (`part_of`) is left out of the sum of a quantity if its assembly, or one that this is part of, carries
# that very quantity; else it counts. Records may come before their assembly: what parts have waits under the assembly's id until
# the end. Of the records only those that have `parts` are remembered (where nobody counted parts, all that have a quantity).
# To be reviewed is what lies under the threshold and no person has corrected. `review` holds the 25 records of the lowest
# confidence, `corrections.first` the first 25 corrections; the workbook's sheets have them all.

# A sum is null until something is known: 0 m³ is not the same as no volume.
def empty_sums: {
  count: 0, volume_m3: null, area_m2: null, length_m: null, without_volume: 0,
  parts: 0, left_out_volume_m3: null, left_out_area_m2: null, left_out_length_m: null
};

def plus($number): if $number == null then . else (. // 0) + $number end;
def measure($e): .volume_m3 |= plus($e.volume_m3) | .area_m2 |= plus($e.area_m2) | .length_m |= plus($e.length_m);

def add($e):
  .count += 1
  | (if $e.volume_m3 == null then .without_volume += 1 else . end)
  | if $e.part_of == null then measure($e) else .parts += 1 end;

# What is remembered of a record that may be an assembly. Of records with one GlobalId any may be meant.
def remember($e):
  if $e.parts == 0 or ($e.part_of == null and $e.volume_m3 == null and $e.area_m2 == null and $e.length_m == null) then .
  else .wholes[$e.global_id] |= {
    part_of: (.part_of // $e.part_of),
    volume: (.volume or $e.volume_m3 != null),
    area: (.area or $e.area_m2 != null),
    length: (.length or $e.length_m != null)
  } end;

def wait($e; $group):
  if $e.part_of == null or ($e.volume_m3 == null and $e.area_m2 == null and $e.length_m == null) then .
  else .waiting[$e.part_of] |= (. // {} | .[$group] |= (. // {volume_m3: null, area_m2: null, length_m: null} | measure($e))) end;

# Of a GlobalId: the quantities that the assembly, or one that it is part of, carries. More levels than these are a circle.
def carried($wholes):
  reduce range(16) as $level ({at: ., volume: false, area: false, length: false};
    (if .at == null then null else $wholes[.at] end) as $whole
    | if $whole == null then .at |= null
      else {at: $whole.part_of, volume: (.volume or $whole.volume), area: (.area or $whole.area), length: (.length or $whole.length)} end);

# Nobody waits any more: each quantity of a part is counted or left out.
def settle:
  .wholes as $wholes
  | reduce (.waiting | to_entries[]) as $whole (.;
      ($whole.key | carried($wholes)) as $carried
      | reduce ($whole.value | to_entries[]) as $part (.;
          .groups[$part.key] |= (
            (if $carried.volume then .left_out_volume_m3 |= plus($part.value.volume_m3) else .volume_m3 |= plus($part.value.volume_m3) end)
            | (if $carried.area then .left_out_area_m2 |= plus($part.value.area_m2) else .area_m2 |= plus($part.value.area_m2) end)
            | if $carried.length then .left_out_length_m |= plus($part.value.length_m) else .length_m |= plus($part.value.length_m) end)));

def join_sums($other):
  .count += $other.count | .without_volume += $other.without_volume | .parts += $other.parts | measure($other)
  | .left_out_volume_m3 |= plus($other.left_out_volume_m3)
  | .left_out_area_m2 |= plus($other.left_out_area_m2)
  | .left_out_length_m |= plus($other.left_out_length_m);

# Groups of [element type, material, storey, elevation] as groups of what `f` gives of such a list.
def by(f):
  reduce to_entries[] as $group ({};
    ([$group.key | fromjson | f] | .[0]) as $name | .[$name] |= (. // empty_sums | join_sums($group.value)));

def exact: if . == null then . else . * 1e6 | round / 1e6 end;
def tidy:
  .volume_m3 |= exact | .area_m2 |= exact | .length_m |= exact
  | .left_out_volume_m3 |= exact | .left_out_area_m2 |= exact | .left_out_length_m |= exact;
def largest_first($name): to_entries | map({($name): .key} + (.value | tidy)) | sort_by([-(.volume_m3 // 0), -.count, .[$name]]);
# More than a large building's largest element has: mostly a model whose quantities are in millimetres and say metres.
def most: {volume_m3: 10000, area_m2: 100000};

# A value in a table of texts.
def shown: if type == "array" or type == "object" then tojson elif type == "number" then exact else . end;

def share($of): if $of == 0 then null else . / $of * 10000 | round / 10000 end;

$params.review_below as $below
| ($parsed.model // {}) as $model
| reduce inputs as $e (
    {
      groups: {}, wholes: {}, waiting: {}, review: [], large: [], corrections: 0, corrected: [],
      n: {large: 0, under: 0, review: 0, corrected: 0, material: 0, inferred: 0, given_material: 0, storey: 0, area: 0,
        from_set: 0, from_property: 0, given_volume: 0}
    };
    (if $e.material_primary == null then "none" else $e.material_primary.category // "unknown" end) as $material
    | ($e.data_quality | if type == "object" then . else {} end) as $quality
    | ([$e.element_type, $material, $e.storey, $e.storey_elevation_m] | tojson) as $group
    | ($e.confidence < $below and $e.corrections == null) as $doubtful
    | (if $e.corrections == null then [] else $e.corrections | map(.field) end) as $fixed
    | ([$fixed[] | select(startswith("material_primary"))] | length > 0) as $given_material
    | ([$fixed[] | select(. == "volume_m3")] | length > 0) as $given_volume
    | .groups[$group] |= (. // empty_sums | add($e))
    | remember($e)
    | wait($e; $group)
    | .n |= (
        (if $e.material_primary == null then .
         elif $given_material then .given_material += 1
         elif ($quality.material_from // "" | tostring | endswith("name")) then .inferred += 1
         else .material += 1 end)
        | (if $e.storey == null then . else .storey += 1 end)
        | (if $e.area_m2 == null then . else .area += 1 end)
        | (if $e.volume_m3 == null then . elif $given_volume then .given_volume += 1
           elif ($quality.volume_from // "" | tostring | startswith("property")) then .from_property += 1 else .from_set += 1 end)
        | (if $e.confidence < $below then .under += 1 else . end)
        | (if $doubtful then .review += 1 else . end)
        | (if $e.corrections == null then . else .corrected += 1 end))
    | (if ($e.volume_m3 // 0) > most.volume_m3 or ($e.area_m2 // 0) > most.area_m2
       then .n.large += 1 | if .n.large <= 3 then .large += [$e | {global_id, name}] else . end
       else . end)
    | (if $e.corrections == null then .
       else .corrections += ($e.corrections | length)
         | if (.corrected | length) >= 25 then .
           else .corrected += [$e.corrections[] | {global_id: $e.global_id, name: $e.name, field, from: (.from | shown), to: (.to | shown), who, why}]
           end
       end)
    | if $doubtful and ((.review | length) < 25 or $e.confidence < .review[-1].confidence)
      then .review |= (. + [$e | {global_id, name, ifc_type, element_type, storey, confidence, reasoning}] | sort_by(.confidence) | .[:25])
      else . end)
| settle
| (.groups | reduce .[] as $group (empty_sums; join_sums($group))) as $total
| $total.count as $count
| ($count - $total.without_volume) as $with_volume
| {
    count: $count,
    model: ($model | {file, schema, project, elements, openings, warnings: (.warnings // [])}),
    missing: (($model.elements // $count) - $count),
    implausible: ({count: .n.large} + most + {first: .large}),
    duplicates: ($model.duplicate_global_ids // []),
    with_volume: $with_volume,
    with_material: (.n.material + .n.inferred + .n.given_material),
    corrected: .n.corrected,
    corrections: {given: ($corrections // [] | length), applied: .corrections, first: .corrected[:25]},
    total: ($total | tidy),
    review_below: $below,
    review_count: .n.review,
    coverage: [
      {what: "Material stated in the model", count: .n.material},
      {what: "Material inferred from names", count: .n.inferred},
      (if .n.given_material > 0 then {what: "Material given by a person", count: .n.given_material} else empty end),
      {what: "No material", count: ($count - .n.material - .n.inferred - .n.given_material)},
      {what: "Storey", count: .n.storey},
      {what: "No storey", count: ($count - .n.storey)},
      {what: "Volume from a quantity set", count: .n.from_set},
      {what: "Volume from a property set", count: .n.from_property},
      (if .n.given_volume > 0 then {what: "Volume given by a person", count: .n.given_volume} else empty end),
      {what: "No volume", count: ($count - $with_volume)},
      {what: "Area", count: .n.area},
      {what: "No area", count: ($count - .n.area)},
      {what: "Confidence at or above the threshold", count: ($count - .n.under)},
      {what: "Confidence under the threshold", count: .n.under},
      {what: "Corrected by a person", count: .n.corrected}
    ] | map(. + {share: (.count | share($count))}),
    by_type: (.groups | by(.[0]) | largest_first("element_type")),
    by_material: (.groups | by(.[1]) | largest_first("category")),
    by_storey: (.groups | by(.[2:] | tojson) | to_entries
      | map((.key | fromjson) as $key | {storey: ($key[0] // "none"), elevation_m: $key[1]} + (.value | tidy))
      | sort_by([.storey == "none", .elevation_m == null, .elevation_m])),
    review: .review
  }
