# What of an element an answer may depend on; `.` is the element. Elements that ask the same share the answer, so
# nothing stands here that no rule reads: no ids, no numbers at the end of names, no quantities.

# The first boolean of this name in any property set.
def flag($key): [.properties[]? | objects | .[$key] | booleans] | .[0];

# A name without the number that tells one occurrence from the next, as in Slab 7 or Slab [7]; null where no word is left.
def words:
  if . == null then null
  else sub("([:_# -]*([0-9]+|\\[[0-9]+\\]|\\([0-9]+\\)))+$"; "") | if test("[^\\W\\d_]{2}") then . else null end
  end;

# The name of a type keeps numbers that belong to a word, as in HEA200 or R10.
def kind:
  if . == null then null
  else sub("([:_# -]+[0-9]+| *(\\[[0-9]+\\]|\\([0-9]+\\)))+$"; "") | if test("[^\\W\\d_]") then . else null end
  end;

# A storey under the ground, by its height or its name.
def underground:
  (.storey_elevation_m != null and .storey_elevation_m < -0.5)
  or ((.storey // "") | test("(^|[^a-z])((u\\.?g|kg|[0-9]\\.?ug|fdn)([^a-z]|$)|keller|untergeschoss|untergeschoß|kelder|basement|sous-?sol|souterrain|foundation|fundament|fundering|fondation)|(^|[ _])-[1-9]"; "i"));

# A property that names the material, where the model associates none.
def stated_material:
  [.properties // {} | to_entries[] | .key as $set | .value | objects | to_entries[]
   | select(.key == "Material" or .key == "Structural Material" or .key == "Materiaal" or .key == "Werkstoff" or .key == "Baustoff" or .key == "Matériau")
   | select((.value | type) == "string" and (.value | test("^ *(material|n/?a|none|undefined|<.*>|-)? *$"; "i") | not))
   | {property: "\($set).\(.key)", value}] | .[0];

(.type_name | kind) as $type
| (.object_type | kind) as $object
| (.name | words) as $name
| (.ifc_type | test("^Ifc(Wall|Slab|Door|Window|Covering|Column|Beam|CurtainWall|Roof|Railing|Stair|Ramp|Plate|Member)")) as $built
| (.ifc_type | test("^Ifc(Wall|Slab)")) as $flat
| {
    ifc_type,
    predefined_type: (if .predefined_type == "NOTDEFINED" then null else .predefined_type end),
    type_name: $type,
    object_type: (if $object == $type then null else $object end),
    name: (if $name == $type or $name == $object then null else $name end),
    load_bearing: (if $flat then flag("LoadBearing") else null end),
    external: (if $built then flag("IsExternal") else null end),
    below_ground: (if $flat and underground then true else null end),
    materials: (if any(.layers[]?; .material != null) then [] else .materials // [] end),
    layers: [.layers[]? | {material, thickness_m: (.thickness_m | values * 10000 | round / 10000) // null}],
    material_property: (if (.materials // []) == [] then stated_material else null end),
    classifications: (.classifications // [])
  }
