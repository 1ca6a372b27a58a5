// Package openwatches holds the answer of front doors about watches in progress.
// docs/operations/tools.md describes it.
package openwatches

import "time"

// Watch is a watch in progress, as the front door describes it.
type Watch struct {
	ID             string    `json:"id"`
	FrontDoor      string    `json:"frontDoor"`
	User           string    `json:"user"`
	UserAgent      string    `json:"userAgent,omitempty"`
	Client         string    `json:"client,omitempty"`
	Group          string    `json:"group,omitempty"`
	Version        string    `json:"version"`
	Resource       string    `json:"resource"`
	Namespace      string    `json:"namespace,omitempty"`
	LabelSelector  string    `json:"labelSelector,omitempty"`
	FieldSelector  string    `json:"fieldSelector,omitempty"`
	Since          time.Time `json:"since"`
	Bytes          int64     `json:"bytes"`
	Revision       int64     `json:"revision"`
	StalledSeconds float64   `json:"stalledSeconds"`
}

// What returns the resource with its group, as kubectl writes it.
func (w Watch) What() string {
	if w.Group == "" {
		return w.Resource
	}
	return w.Resource + "." + w.Group
}

// List is the answer about the watches of all front doors.
type List struct {
	Items      []Watch     `json:"items"`
	Total      int         `json:"total"`
	FrontDoors []FrontDoor `json:"frontDoors"`
}

// FrontDoor is a front door whose watches are listed, or cannot be.
type FrontDoor struct {
	Instance string `json:"instance,omitempty"`
	Host     string `json:"host,omitempty"`
	Address  string `json:"address,omitempty"`
	Total    int    `json:"total"`
	Error    string `json:"error,omitempty"`
}

// Hosts returns the hosts of front doors by instance.
func (l List) Hosts() map[string]string {
	hosts := map[string]string{}
	for _, d := range l.FrontDoors {
		hosts[d.Instance] = d.Host
	}
	return hosts
}
