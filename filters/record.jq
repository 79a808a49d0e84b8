# The record of an element: `.` is the answer, $element comes from the model. What can be measured is the model's, never the
# answer's.

($element.volume_m3 // $element.property_volume_m3) as $volume
| (if $element.volume_m3 != null then "quantity set"
   elif $element.property_volume_m3 != null then "property set: \($element.property_volume_from // "")"
   else null end) as $volume_from
| {
    global_id: $element.global_id,
    ifc_type: $element.ifc_type,
    name: $element.name,
    element_type,
    function,
    location,
    material_primary,
    material_secondary: (.material_secondary // []),
    volume_m3: $volume,
    area_m2: $element.area_m2,
    length_m: $element.length_m,
    storey: $element.storey,
    storey_elevation_m: $element.storey_elevation_m,
    part_of: $element.part_of,
    parts: $element.parts,
    # Only a volume by a quantity set lets an answer stand above 0.85.
    confidence: (if $volume_from == "quantity set" then .confidence else [.confidence, 0.85] | min end),
    data_quality: {
      material_from: .data_quality.material_from,
      volume_from: $volume_from,
      missing: ((.data_quality.missing // [])
        + (if $volume == null then ["volume"] else [] end)
        + (if $element.storey == null then ["storey"] else [] end)),
      assumed: (.data_quality.assumed // [])
    },
    reasoning,
    rule
  }
