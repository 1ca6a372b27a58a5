package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/load/events"
	"github.com/portico-platform/portico/internal/load/wire"
)

const (
	mergePatchType = "application/merge-patch+json"
	applyType      = "application/apply-patch+yaml"
	// applyQuery are the parameters of an apply, with force.
	applyQuery = "?fieldManager=bench&force=true"
)

// bodies returns the written objects of one kind, and a merge patch for them.
type bodies struct {
	path  string
	of    func(name string) []byte
	patch string
}

func podBodies() bodies {
	return bodies{writtenPods, func(name string) []byte { return load.Pod(name, 1) },
		`{"metadata":{"annotations":{"example.com/note":"` + neverNumbered + `"}}}`}
}

func mapBodies() bodies {
	return bodies{writtenMaps, load.ConfigMap, `{"data":{"note":"` + neverNumbered + `"}}`}
}

// create creates the same number of objects on every server, so that all have equal
// contents.
func create(n int, kind bodies) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		all, err := m.connect(ctx, n)
		if err != nil {
			return err
		}
		own := make([]numbered, n)
		for i := range own {
			// The first number in the text is the name.
			if own[i], err = number(kind.of(neverNumbered)); err != nil {
				return err
			}
		}
		return m.measure(ctx, func() (load.Samples, error) {
			return all.Run(ctx, load.Times(m.settings.creates), func(i int, c *wire.Conn) (int64, error) {
				return c.Do(wire.Request{Method: http.MethodPost, Path: kind.path, Body: own[i].set(m.created.Add(1))}, nil)
			})
		})
	}
}

// own creates an object for each client and returns their paths and current states.
func (m *measurement) own(all load.Clients, kind bodies) (paths []string, current [][]byte, err error) {
	for i, c := range all {
		name := fmt.Sprintf("own-%d", i)
		if err := ensure(c, kind.path, kind.of(name)); err != nil {
			return nil, nil, err
		}
		body, err := read(c, kind.path+"/"+name)
		if err != nil {
			return nil, nil, err
		}
		paths, current = append(paths, kind.path+"/"+name), append(current, body)
	}
	return paths, current, nil
}

// put replaces each client's own object by the last response with one value changed.
func put(n int, kind bodies) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		all, err := m.connect(ctx, n)
		if err != nil {
			return err
		}
		paths, current, err := m.own(all, kind)
		if err != nil {
			return err
		}
		answers := make([][]byte, n)
		return m.measure(ctx, func() (load.Samples, error) {
			return all.Run(ctx, load.During(m.settings.duration), func(i int, c *wire.Conn) (int64, error) {
				body, err := number(current[i])
				if err != nil {
					return 0, err
				}
				answer := answers[i][:0]
				size, err := c.Do(wire.Request{Method: http.MethodPut, Path: paths[i], Body: body.set(m.created.Add(1))},
					func(piece []byte) { answer = append(answer, piece...) })
				current[i], answers[i] = answer, current[i]
				return size, err
			})
		})
	}
}

// mergePatch changes one value of each client's own object.
func mergePatch(n int, kind bodies) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		all, err := m.connect(ctx, n)
		if err != nil {
			return err
		}
		paths, _, err := m.own(all, kind)
		if err != nil {
			return err
		}
		own := make([]numbered, n)
		for i := range own {
			if own[i], err = number([]byte(kind.patch)); err != nil {
				return err
			}
		}
		return m.measure(ctx, func() (load.Samples, error) {
			return all.Run(ctx, load.During(m.settings.duration), func(i int, c *wire.Conn) (int64, error) {
				return c.Do(wire.Request{Method: http.MethodPatch, Path: paths[i], Type: mergePatchType, Body: own[i].set(m.created.Add(1))}, nil)
			})
		})
	}
}

// apply applies each client's own Deployment, with one value changed each time or with no
// change. At the end it checks whether the resourceVersion has changed accordingly.
func apply(n int, changing bool) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		all, err := m.connect(ctx, n)
		if err != nil {
			return err
		}
		requests, own := make([]wire.Request, n), make([]numbered, n)
		for i, c := range all {
			name := fmt.Sprintf("own-%d", i)
			if own[i], err = number(load.Deployment(name)); err != nil {
				return err
			}
			requests[i] = wire.Request{Method: http.MethodPatch, Path: writtenApps + "/" + name + applyQuery, Type: applyType, Body: own[i].text}
			if _, err := c.Do(requests[i], nil); err != nil {
				return err
			}
		}
		before, err := read(all[0], writtenApps+"/own-0")
		if err != nil {
			return err
		}
		err = m.measure(ctx, func() (load.Samples, error) {
			return all.Run(ctx, load.During(m.settings.duration), func(i int, c *wire.Conn) (int64, error) {
				if changing {
					own[i].set(m.created.Add(1))
				}
				return c.Do(requests[i], nil)
			})
		})
		if err != nil {
			return err
		}
		after, err := read(all[0], writtenApps+"/own-0")
		if err == nil && (events.Version(before) != events.Version(after)) != changing {
			err = fmt.Errorf("resourceVersion was %q and is %q", events.Version(before), events.Version(after))
		}
		return err
	}
}
