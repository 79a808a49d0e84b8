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

# Begins under the ground and ends above it, as a wall does that stands on the foundation.
def emerges:
  .storey_elevation_m != null and .storey_elevation_m < 0
  and .takeoff.height_m != null and .storey_elevation_m + .takeoff.height_m > 1.5;

# Whether a text names a material: it has letters, and is no placeholder or hatch of an authoring tool.
def names_material:
  test("\\p{L}") and (test("^ *(material|n/?a|none|undefined|unknown|unbekannt|onbekend|inconnu|background fill|foreground fill|背景|既定の.*|<.*>|(leer|solid|massiv)( [0-9]+)?|raster .*|hatching.*|(paint|anstrich|peinture)[ ,:-].*|.*arcering.*|(radial|linear) gradient fill.*|(default|domyśln.|standaard|standard) .*|.* (по умолчанию|por defecto|par défaut|predefinit.)) *$"; "i") | not);

# Properties that name the material, in the languages of authoring tools.
def material_properties: {
  "Material": 1, "Structural Material": 1, "Monolithic Material": 1, "Materiaal": 1, "Werkstoff": 1, "Baustoff": 1,
  "Tragwerksmaterial": 1, "Material des massiven Laufs": 1, "Matériau": 1, "Matériau structurel": 1, "Matériau monobloc": 1, "Matériaux": 1,
  "Materiale": 1, "Materiał": 1, "Material estructural": 1, "Материал": 1, "Материал несущих конструкций": 1
};

# A property that names the material, where the model associates none.
def stated_material:
  material_properties as $known
  | [.properties // {} | to_entries[] | .key as $set | .value | objects | to_entries[]
   | select($known[.key] != null and (.value | type) == "string" and (.value | names_material))
   | {property: "\($set).\(.key)", value}] | .[0];

(.type_name | kind) as $type
| (.object_type | kind) as $object
| (.name | words) as $name
| (.ifc_type | test("^Ifc(Wall|Slab|Door|Window|Covering|Column|Beam|CurtainWall|Roof|Railing|Stair|Ramp|Plate|Member)")) as $built
| (.ifc_type | test("^Ifc(Wall|Slab)")) as $flat
# A placeholder beside names stays: it may be what the element is made of.
| (if any(.materials[]?; names_material) then .materials else [] end) as $materials
| {
    ifc_type,
    predefined_type: (if .predefined_type == "NOTDEFINED" then null else .predefined_type end),
    type_name: $type,
    object_type: (if $object == $type then null else $object end),
    name: (if $name == $type or $name == $object then null else $name end),
    load_bearing: (if $flat then flag("LoadBearing") else null end),
    external: (if $built then flag("IsExternal") else null end),
    below_ground: (if $flat and underground and (emerges | not) then true else null end),
    materials: (if any(.layers[]?; .material != null) or (.constituents // []) != [] then [] else $materials end),
    layers: [.layers[]? | {material: (.material | if . != null and names_material then . else null end), thickness_m: (.thickness_m | values * 10000 | round / 10000) // null}],
    material_property: (if $materials == [] then stated_material else null end),
    constituents: [.constituents[]? | select(.material != null and (.material | names_material)) | {material, part: (.category // .name), fraction}],
    # With their systems: 31 is a window by NL/SfB, and anything by another.
    classifications: (if .classification_references == null then .classifications // []
                      else [.classification_references[] | {system, code: (.code // .title), title}] end)
  }
