# The record of an element: `.` is the answer, $element comes from the model, $question is the id of what was asked. What can be
# measured is the model's, never the answer's.

# The figures to count, where a reader has judged them; else those that the model states.
def figures:
  .takeoff // {
    volume_m3: (.volume_m3 // .property_volume_m3),
    volume_from: (if .volume_m3 != null then "quantity set"
      elif .property_volume_m3 != null then "property set: \(.property_volume_from // "")" else null end),
    area_m2: (.area_m2 // .property_area_m2),
    area_kind: (if .area_m2 != null or .property_area_m2 != null then "not stated" else null end),
    area_from: (if .area_m2 != null then "quantity set"
      elif .property_area_m2 != null then "property set: \(.property_area_from // "")" else null end),
    length_m: (.length_m // .property_length_m),
    length_from: (if .length_m != null then "quantity set"
      elif .property_length_m != null then "property set: \(.property_length_from // "")" else null end),
    height_m: null, height_from: null,
    implausible: []
  };

# More than a large building's largest element has. Without a mesh that confirms it, the model says metres and means millimetres.
def beyond($most; $mesh): . != null and . > $most and ($mesh == null or . > $mesh * 2);

($element | figures) as $figures
| ($figures.volume_m3 | beyond(10000; $element.geometry.volume_m3)) as $volume_beyond
| ($figures.area_m2 | beyond(100000; $element.geometry.surface_area_m2)) as $area_beyond
| (if $volume_beyond then null else $figures.volume_m3 end) as $volume
| (if $volume_beyond then null else $figures.volume_from end) as $volume_from
| {
    global_id: $element.global_id,
    ifc_type: $element.ifc_type,
    name: $element.name,
    type_name: $element.type_name,
    tag: $element.tag,
    element_type,
    function,
    location,
    material_primary,
    material_secondary: (.material_secondary // []),
    layers: ($element.layers // []),
    classification_references: ($element.classification_references // []),
    volume_m3: $volume,
    area_m2: (if $area_beyond then null else $figures.area_m2 end),
    area_kind: (if $area_beyond then null else $figures.area_kind end),
    length_m: $figures.length_m,
    height_m: $figures.height_m,
    storey: $element.storey,
    storey_elevation_m: $element.storey_elevation_m,
    part_of: $element.part_of,
    parts: $element.parts,
    # Only a volume by a quantity set, or of the geometry, lets an answer stand above 0.85.
    confidence: (if $volume_from == "quantity set" or $volume_from == "geometry" then .confidence else [.confidence, 0.85] | min end),
    data_quality: {
      material_from: .data_quality.material_from,
      volume_from: $volume_from,
      area_from: (if $area_beyond then null else $figures.area_from end),
      length_from: $figures.length_from,
      height_from: $figures.height_from,
      implausible: (($figures.implausible // [])
        + (if $volume_beyond then [{quantity: "volume", stated: $figures.volume_m3, taken: null,
            reason: "more than 10,000 m³ in one element, and no geometry confirms it"}] else [] end)
        + (if $area_beyond then [{quantity: "area", stated: $figures.area_m2, taken: null,
            reason: "more than 100,000 m² of one element, and no geometry confirms it"}] else [] end)),
      missing: ((.data_quality.missing // [])
        + (if $volume == null then ["volume"] else [] end)
        + (if $element.storey == null then ["storey"] else [] end)),
      assumed: (.data_quality.assumed // [])
    },
    reasoning,
    rule,
    question: $question,
    outline: $element.geometry.outline
  }
