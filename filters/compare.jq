# What two revisions are compared by; `.` is a record. Records are the same element if their `key` is. They have changed if one of the
# `fields` has. The totals sum the `quantities` of each `group`, and leave a quantity of a part out if its assembly carries it.
{
  key: .global_id,
  group: .element_type,
  part_of,
  fields: {
    name,
    element_type,
    ifc_type,
    type_name,
    storey,
    location,
    material: .material_primary.category,
    material_name: .material_primary.name,
    other_materials: [.material_secondary[]?.name],
    layers,
    volume_m3,
    area_m2,
    area_kind,
    length_m,
    height_m
  },
  # Areas of two kinds are two quantities: they are never added together.
  quantities: {
    "Volume [m³]": .volume_m3,
    "Area, \(.area_kind // "kind not stated") [m²]": .area_m2,
    "Length [m]": .length_m
  }
}
