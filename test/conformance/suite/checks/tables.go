package checks

import (
	"slices"
	"time"

	. "github.com/portico-platform/portico/test/conformance/suite/harness"
)

func tables() {
	s := Section("Table representation")

	s.Check("TABLE-01", "kind Table, apiVersion meta.platform.io/v1beta1, columns with name and type: a list", func(t *T) {
		t.CM("a")
		o := t.Table(t.In("configmaps"))
		t.Eq("first column", o.Str("columnDefinitions.0.name"), "Name")
	})
	s.Check("TABLE-02", "a Table of one resource (GET)", func(t *T) {
		t.CM("a")
		o := t.Table(t.In("configmaps") + "/a")
		t.Eq("number of rows", len(o.List("rows")), 1)
	})
	s.Check("TABLE-03", "default Table: two columns, Name (string) and Created At (date)", func(t *T) {
		t.CRD(AnySchema)
		o := t.Table(All("apiextensions.platform.io/v1/customresourcedefinitions"))
		var got []string
		for _, c := range o.List("columnDefinitions") {
			got = append(got, c.Str("name")+" "+c.Str("type"))
		}
		t.Eq("columns of a type without a custom Table definition", got, []string{"Name string", "Created At date"})
	})
	s.Check("TABLE-04", "default Table of a custom resource type: a name and a date column", func(t *T) {
		c := t.CRD(AnySchema)
		t.POST(t.In(c.Resource()), c.Object("a", "")).OK()
		o := t.Table(t.In(c.Resource()))
		cols := o.List("columnDefinitions")
		t.Eq("number of columns", len(cols), 2)
		t.Eq("first column", cols[0].Str("name")+" "+cols[0].Str("type"), "Name string")
		t.Eq("type of the second column", cols[1].Str("type"), "date")
		t.True(slices.Contains([]string{"Created At", "Age"}, cols[1].Str("name")), "the second column to be Created At (or Age), got %q", cols[1].Str("name"))
	})
	s.Check("TABLE-05", "custom Table definition: additionalPrinterColumns of a custom resource type", func(t *T) {
		c := t.CRD(`{type: object, properties: {spec: {type: object, properties: {size: {type: integer}, color: {type: string}}}}}`,
			`additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}, {name: Color, type: string, jsonPath: .spec.color}]`)
		t.POST(t.In(c.Resource()), c.Object("a", "spec: {size: 7, color: red}")).OK()
		o := t.Table(t.In(c.Resource()))
		t.Eq("columns", Columns(o), []string{"Name", "Size", "Color"})
		t.Eq("type of column Size", o.Str("columnDefinitions.1.type"), "integer")
		t.Eq("cells", o.List("rows")[0].At("cells"), []any{"a", 7, "red"})
	})
	for _, c := range []struct{ id, resource, body, column string }{
		{"TABLE-06", "configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: "1", y: "2"}}`, "Data"},
		{"TABLE-07", "apps/v1/deployments", Deployment("a", 0).String(), "Ready"},
	} {
		s.Check(c.id, "the server builds a Table of "+c.resource+" with one row per resource and a column "+c.column, func(t *T) {
			t.POST(t.In(c.resource), c.body).OK()
			list := t.GET(t.In(c.resource)).OK().Obj()
			o := t.Table(t.In(c.resource))
			t.Includes("columns", Columns(o), "Name", c.column)
			t.True(len(o.List("rows")) >= len(list.Names()), "a row for each of %d items, got %d", len(list.Names()), len(o.List("rows")))
			t.Eq("number of cells per row", len(o.At("rows.0.cells").([]any)), len(Columns(o)))
		})
	}
	s.Check("TABLE-10", "a watch of Tables has column definitions in its first event only, and null in others", func(t *T) {
		t.CM("a")
		t.CM("b")
		w := t.Watch(t.In("configmaps")+"?resourceVersion=0", Accept(AsTable))
		t.True(len(w.Next(10*time.Second).Object.List("columnDefinitions")) > 0, "column definitions in the first event")
		value, given := w.Next(10 * time.Second).Object["columnDefinitions"]
		t.True(given && value == nil, "null in the second event, got %v", value)
	})
	s.Check("TABLE-08", "a Table may leave out the objects, and names its version also for a dry-run", func(t *T) {
		o := t.CM("a")
		table := t.PATCH(MergePatch, t.In("configmaps")+"/a?dryRun=All&includeObject=None", `{data: {k: v}}`, Accept(AsTable)).Is(200).Obj()
		t.Eq("resourceVersion", table.RV(), o.RV())
		value, given := table.List("rows")[0]["object"]
		t.True(given && value == nil, "the object is null, got %v", value)
	})
	s.Check("TABLE-09", "a Table shows what a dry-run would make of an object, not what was shown of it before", func(t *T) {
		t.POST(t.In("configmaps"), Held("a", "example.com/one")).OK()
		path := t.In("configmaps") + "/a"
		t.GET(path, Accept(AsTable)).OK()
		o := t.DELETE(path+"?dryRun=All", nil, Accept(AsTable)).Is(200).Obj()
		t.True(o.List("rows")[0].Has("object.metadata.deletionTimestamp"), "the object is being deleted: %v", o)
		o = t.GET(path, Accept(AsTable)).OK().Obj()
		t.True(!o.List("rows")[0].Has("object.metadata.deletionTimestamp"), "the object is not being deleted: %v", o)
		t.DELETE(path, nil).OK()
		t.GET(path, Accept(AsTable)).OK()
		o = t.PATCH(MergePatch, path, `{metadata: {finalizers: null, labels: {a: b}}}`, Accept(AsTable)).Is(200).Obj()
		t.Eq("labels of the object that is gone", o.List("rows")[0].At("object.metadata.labels"), Obj{"a": "b"})
	})
}
