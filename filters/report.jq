# What the reports show, in one pass over the records: `inputs` gives them one at a time, in the order of the model.
# Records count in groups: all that a table or a count tells apart is in the key of the group, so that a record costs one look-up.
# A part of an assembly (`part_of`) is left out of the sum of a quantity if its assembly, or one that this is part of, carries
# that very quantity; else it counts. Records may come before their assembly: what parts have waits under the assembly's id until
# the end. Of the records only those that have `parts` are remembered (where nobody counted parts, all that have a quantity).
# To be reviewed is what lies under the threshold and no person has corrected, and what has figures that nothing confirms.

# A sum is null until something is known: 0 m³ is not the same as no volume. A group has one kind of area; a total keeps them apart.
def empty_group: {
  count: 0, volume_m3: null, area_m2: null, length_m: null, without_volume: 0,
  parts: 0, left_out_volume_m3: null, left_out_area_m2: null, left_out_length_m: null
};
def empty_sums: {
  count: 0, volume_m3: null, areas: {}, length_m: null, without_volume: 0,
  parts: 0, left_out_volume_m3: null, left_out_areas: {}, left_out_length_m: null
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
      else {at: $whole.part_of, volume: (.volume or $whole.volume), area: (.area or $whole.area), length: (.length or $whole.length)} end)
  | {volume, area, length};

# Nobody waits any more: each quantity of a part is counted or left out.
def settle:
  .wholes as $wholes
  | reduce (.waiting | to_entries[]) as $whole (. + {assemblies: {}};
      ($whole.key | carried($wholes)) as $carried
      | (if $carried.volume or $carried.area or $carried.length then .assemblies[$whole.key] = $carried else . end)
      | reduce ($whole.value | to_entries[]) as $part (.;
          .groups[$part.key] |= (
            (if $carried.volume then .left_out_volume_m3 |= plus($part.value.volume_m3) else .volume_m3 |= plus($part.value.volume_m3) end)
            | (if $carried.area then .left_out_area_m2 |= plus($part.value.area_m2) else .area_m2 |= plus($part.value.area_m2) end)
            | if $carried.length then .left_out_length_m |= plus($part.value.length_m) else .length_m |= plus($part.value.length_m) end)));

# Adds a group, which has areas of one kind, to a sum.
def join($kind; $group):
  .count += $group.count | .without_volume += $group.without_volume | .parts += $group.parts
  | .volume_m3 |= plus($group.volume_m3) | .length_m |= plus($group.length_m)
  | (if $group.area_m2 == null then . else .areas[$kind] |= plus($group.area_m2) end)
  | .left_out_volume_m3 |= plus($group.left_out_volume_m3) | .left_out_length_m |= plus($group.left_out_length_m)
  | if $group.left_out_area_m2 == null then . else .left_out_areas[$kind] |= plus($group.left_out_area_m2) end;

# The groups, summed by what `f` gives of their keys: a list of {key, sums}.
def by($groups; f):
  reduce $groups[] as $group ({};
    ($group.key | f | tojson) as $name | .[$name] |= (. // empty_sums | join($group.key.area_kind; $group.value)))
  | to_entries | map({key: (.key | fromjson), sums: .value});

def exact: if . == null then . else . * 1e6 | round / 1e6 end;
def all_exact: reduce to_entries[] as $one ({}; .[$one.key] = ($one.value | exact));
def tidy:
  .volume_m3 |= exact | .areas |= all_exact | .length_m |= exact
  | .left_out_volume_m3 |= exact | .left_out_areas |= all_exact | .left_out_length_m |= exact;
def named: .key + (.sums | tidy);
def largest_first(f): sort_by([-(.volume_m3 // 0), -.count, f]);
# How many records are in groups of which `f` holds.
def count_of($groups; f): reduce ($groups[] | select(.key | f)) as $group (0; . + $group.value.count);

# A value in a table of texts.
def shown: if type == "array" or type == "object" then tojson elif type == "number" then exact else . end;

def share($of): if $of == 0 then null else . / $of * 10000 | round / 10000 end;

# Most rows of a list that names elements. What is beyond is counted.
def most: 5000;
# The field that a person corrects to settle an implausible quantity.
def field: {volume: "volume_m3", area: "area_m2", length: "length_m", height: "height_m"}[.quantity];
def materials: [.material_primary, (.material_secondary // [])[]] | map(.name // empty);

# What tools write where nobody named the project.
def is_no_name: test("^\\W*((my|default|unknown|new) )?(project|projekt|progetto|proyecto|projet)?\\W*(name|number|nummer|nom|naam)?\\W*$|^(nazwa projektu|nombre de proyecto|projektname|projectnaam|プロジェクト名|наименование проекта)$"; "i");

# A row of the sheet Review for an element, or for the first that asks a question.
def asked($count): {
  question, count: $count, global_id, ifc_type, type_name, names: [.name // empty], materials: materials, storey,
  element_type, category: .material_primary.category, confidence, reasoning
};

$params.review_below as $below
| ($parsed.model // {}) as $model
| ($corrections // []) as $given
| reduce inputs as $e (
    {groups: {}, wholes: {}, waiting: {}, questions: {}, implausible: [], implausible_count: 0, open_count: 0,
      corrections: {}, applied: 0, matched: {}};
    ($e.data_quality | if type == "object" then . else {} end) as $quality
    | ($quality.material_from // "" | tostring) as $material_from
    | ($quality.volume_from // "" | tostring) as $volume_from
    | (if $e.corrections == null then [] else $e.corrections | map(.field) end) as $fixed
    | ($quality.implausible // []) as $implausible
    | ([$implausible[] | select(.taken == null) | field] - $fixed != []) as $open
    | ($e.confidence < $below and $e.corrections == null) as $unsure
    | ([$fixed[] | select(startswith("material_primary"))] != []) as $gives_material
    | ([$fixed[] | select(. == "volume_m3")] != []) as $gives_volume
    | ({
        element_type: $e.element_type,
        category: ($e.material_primary.category // (if ($e.material_secondary // []) == [] then "none" else "several" end)),
        storey: (if $e.storey == "" then null else $e.storey end),
        elevation_m: $e.storey_elevation_m,
        area_kind: (if $e.area_m2 == null then null else $e.area_kind // "not stated" end),
        material: (if $gives_material then "person"
          elif $e.material_primary != null then (if $material_from | endswith("name") then "inferred" else "named" end)
          elif ($e.material_secondary // []) != [] then "several" else "none" end),
        volume: (if $e.volume_m3 == null then "none" elif $gives_volume then "person"
          elif $volume_from | startswith("property") then "property set"
          elif $volume_from == "geometry" then "geometry" else "quantity set" end),
        under: ($e.confidence < $below),
        review: ($unsure or $open),
        corrected: ($e.corrections != null)
      } | tojson) as $group
    | .groups[$group] |= (. // empty_group | add($e))
    | remember($e)
    | wait($e; $group)
    | (if $implausible == [] then . else
         .implausible_count += 1 | (if $open then .open_count += 1 else . end)
         | if (.implausible | length) >= most then .
           else .implausible += [$e | asked(1) + {open: $open, implausible: $implausible}] end
       end)
    | (if $unsure then .questions[$e.question // $e.global_id] |= (
         if . == null then $e | asked(1)
         else .count += 1
           | (if (.names | length) < 3 and $e.name != null and ([$e.name] - .names) != [] then .names += [$e.name] else . end)
           | if $e.confidence < .confidence then .confidence = $e.confidence else . end
         end)
       else . end)
    | if $e.corrections == null then .
      else .applied += ($e.corrections | length)
        | .matched[$e.global_id] = true
        | (if $e.question == null then . else .matched[$e.question] = true end)
        | reduce $e.corrections[] as $one (.;
            ([$one.question // $e.global_id, $one.field, $one.to, $one.who, $one.why] | tojson) as $row
            | .corrections[$row] |= (
                if . == null then {count: 1, global_id: $e.global_id, question: $one.question, name: $e.name, field: $one.field,
                  from: ($one.from | shown), to: ($one.to | shown), who: $one.who, why: $one.why}
                else .count += 1 end))
      end)
| settle
| . as $state
| [.groups | to_entries[] | {key: (.key | fromjson), value}] as $groups
| (reduce $groups[] as $group (empty_sums; join($group.key.area_kind; $group.value))) as $total
| $total.count as $count
| ($count - $total.without_volume) as $with_volume
| {
    named: count_of($groups; .material == "named"),
    inferred: count_of($groups; .material == "inferred"),
    several: count_of($groups; .material == "several"),
    none: count_of($groups; .material == "none"),
    person: count_of($groups; .material == "person")
  } as $material
| {
    "quantity set": count_of($groups; .volume == "quantity set"),
    "property set": count_of($groups; .volume == "property set"),
    geometry: count_of($groups; .volume == "geometry"),
    person: count_of($groups; .volume == "person"),
    none: $total.without_volume
  } as $volume
| count_of($groups; .storey != null) as $with_storey
| count_of($groups; .area_kind != null) as $with_area
| count_of($groups; .under) as $under
| count_of($groups; .corrected) as $corrected
| (by($groups; {element_type}) | map(named) | largest_first(.element_type)) as $by_type
| (by($groups; {storey, elevation_m}) | map(named)
    | sort_by([.storey == null, .elevation_m == null, .elevation_m])
    | to_entries | map({number: (.key + 1)} + .value)) as $by_storey
| (reduce $by_storey[] as $row ({}; .[$row.storey // ""] |= (. // {} | .[$row.elevation_m | tojson] = $row.number))) as $storey_numbers
| (reduce ($by_type | to_entries[]) as $row ({}; .[$row.value.element_type] = $row.key)) as $ranks
| (reduce ($by_type[] | .areas, .left_out_areas | keys[]) as $kind ({}; .[$kind] = true) | keys) as $kinds
| {
    count: $count,
    model: ($model | {file, schema, project, elements, openings, warnings: (.warnings // [])}),
    title: ([$model.project, (($model.file // $params.model) | strings | sub("^.*[/\\\\]"; "") | sub("\\.ifc$"; ""; "i"))]
      | map(strings | select(is_no_name | not)) | .[0]),
    missing: (($model.elements // $count) - $count),
    implausible: {count: .implausible_count, open: .open_count, rows: (.implausible | sort_by(.open | not))},
    duplicates: ($model.duplicate_global_ids // []),
    with_volume: $with_volume,
    with_material: ($material.named + $material.inferred + $material.person),
    material: $material,
    volume: $volume,
    corrected: $corrected,
    corrections: {
      given: ($given | length),
      applied: .applied,
      rows: [.corrections[]],
      unmatched: [$given[] | select($state.matched[if (.global_id // "") != "" then .global_id else .question // "" end] | not)
        | {global_id, question, field, value, who, why}]
    },
    total: ($total | tidy),
    area_kinds: (["net side", "gross side", "net footprint", "gross footprint", "surface", "not stated"] | map(select(. as $kind | any($kinds[]; . == $kind)))),
    review_below: $below,
    review_count: count_of($groups; .review),
    review_questions: (.questions | length),
    review: ([.questions[]] | sort_by([-.count, .confidence]) | .[:most]),
    coverage: [
      {what: "Material named in the model", count: $material.named},
      {what: "Material inferred from names", count: $material.inferred},
      (if $material.person > 0 then {what: "Material given by a person", count: $material.person} else empty end),
      {what: "Several materials, none leads", count: $material.several},
      {what: "No material", count: $material.none},
      {what: "Storey", count: $with_storey},
      {what: "No storey", count: ($count - $with_storey)},
      {what: "Volume from a quantity set", count: $volume["quantity set"]},
      {what: "Volume from a property set", count: $volume["property set"]},
      {what: "Volume from the geometry", count: $volume.geometry},
      (if $volume.person > 0 then {what: "Volume given by a person", count: $volume.person} else empty end),
      {what: "No volume", count: $volume.none},
      {what: "Area", count: $with_area},
      {what: "No area", count: ($count - $with_area)},
      {what: "Implausible quantities", count: .implausible_count},
      {what: "Implausible quantities that nothing confirms", count: .open_count},
      {what: "Confidence at or above the threshold", count: ($count - $under)},
      {what: "Confidence under the threshold", count: $under},
      {what: "Corrected by a person", count: $corrected}
    ] | map(. + {share: (.count | share($count))}),
    by_type: $by_type,
    by_material: (by($groups; {category}) | map(named) | largest_first(.category)),
    by_storey: $by_storey,
    by_type_storey_material: (by($groups; {element_type, storey, elevation_m, category}) | map(named
        | {number: $storey_numbers[.storey // ""][.elevation_m | tojson]} + .)
      | sort_by([$ranks[.element_type], .number, -(.volume_m3 // 0), .category])),
    storey_numbers: $storey_numbers,
    assemblies: .assemblies
  }
