"""Fills in the sheet Review of a workbook, as a person does: edit_review.py FILE EDIT...

An edit is a JSON object: {"row": {"Names": "Attika"}, "cells": {"Correct element type": "External wall"}}. If no row of the sheet
has these texts, a row with them is added."""

import json
import re
import sys
import xml.etree.ElementTree as tree
import zipfile

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
tree.register_namespace("", MAIN)
tree.register_namespace("r", RELATION)


def main(path, edits):
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    book = tree.fromstring(files["xl/workbook.xml"])
    sheet = next(s for s in book.iter(f"{{{MAIN}}}sheet") if s.get("name") == "Review")
    relations = tree.fromstring(files["xl/_rels/workbook.xml.rels"])
    target = next(r.get("Target") for r in relations if r.get("Id") == sheet.get(f"{{{RELATION}}}id"))
    place = "xl/" + target.removeprefix("/xl/")
    strings = []
    if "xl/sharedStrings.xml" in files:
        for item in tree.fromstring(files["xl/sharedStrings.xml"]):
            strings.append("".join(text.text or "" for text in item.iter(f"{{{MAIN}}}t")))
    root = tree.fromstring(files[place])
    data = root.find(f"{{{MAIN}}}sheetData")

    def text(cell):
        if cell.get("t") == "s":
            return strings[int(cell.findtext(f"{{{MAIN}}}v"))]
        return "".join(part.text or "" for part in cell.iter() if part.tag in (f"{{{MAIN}}}t", f"{{{MAIN}}}v"))

    def column(cell):
        return re.match("[A-Z]+", cell.get("r")).group()

    rows = list(data)
    headers = {text(cell): column(cell) for cell in rows[0]}
    for edit in map(json.loads, edits):
        wanted = {headers[header]: part for header, part in edit["row"].items()}

        def matches(row):
            cells = {column(cell): text(cell) for cell in row}
            return all(part in cells.get(at, "") for at, part in wanted.items())

        row = next((row for row in rows[1:] if matches(row)), None)
        values = dict(edit["cells"])
        if row is None:
            row = tree.SubElement(data, f"{{{MAIN}}}row", {"r": str(int(rows[-1].get("r")) + 1)})
            rows.append(row)
            values |= edit["row"]
        for header, value in values.items():
            put(row, headers[header], value, column)
    files[place] = tree.tostring(root, xml_declaration=True, encoding="UTF-8")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def put(row, at, value, column):
    cells = {column(cell): cell for cell in row}
    cell = cells.get(at)
    if cell is None:
        cell = tree.Element(f"{{{MAIN}}}c", {"r": at + row.get("r")})
        before = [other for other in row if (len(column(other)), column(other)) < (len(at), at)]
        row.insert(len(before), cell)
    for part in list(cell):
        cell.remove(part)
    if isinstance(value, str):
        cell.set("t", "inlineStr")
        item = tree.SubElement(cell, f"{{{MAIN}}}is")
        tree.SubElement(item, f"{{{MAIN}}}t").text = value
    else:
        cell.attrib.pop("t", None)
        tree.SubElement(cell, f"{{{MAIN}}}v").text = str(value)


main(sys.argv[1], sys.argv[2:])
