package node

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/vocabulary"
)

// pod is what a pod uses in its namespace.
type pod struct {
	node    string
	account string
	secrets, configMaps,
	claims sets.Set[string]
}

// named is a reference by name.
type named struct {
	Name string `json:"name"`
}

// container is the part of a container that names Secrets and ConfigMaps.
type container struct {
	Env []struct {
		ValueFrom *struct {
			Secret    *named `json:"secretKeyRef"`
			ConfigMap *named `json:"configMapKeyRef"`
		} `json:"valueFrom"`
	} `json:"env"`
	EnvFrom []struct {
		Secret    *named `json:"secretRef"`
		ConfigMap *named `json:"configMapRef"`
	} `json:"envFrom"`
}

// podVolume is the part of a volume that names other objects.
type podVolume struct {
	Name   string `json:"name"`
	Secret *struct {
		Name string `json:"secretName"`
	} `json:"secret"`
	ConfigMap *named `json:"configMap"`
	Claim     *struct {
		Name string `json:"claimName"`
	} `json:"persistentVolumeClaim"`
	Ephemeral *struct{} `json:"ephemeral"`
	AzureFile *struct {
		Name string `json:"secretName"`
	} `json:"azureFile"`
	CSI *struct {
		Secret *named `json:"nodePublishSecretRef"`
	} `json:"csi"`
	CephFS    secretHolder `json:"cephfs"`
	Cinder    secretHolder `json:"cinder"`
	Flex      secretHolder `json:"flexVolume"`
	ISCSI     secretHolder `json:"iscsi"`
	RBD       secretHolder `json:"rbd"`
	ScaleIO   secretHolder `json:"scaleIO"`
	StorageOS secretHolder `json:"storageos"`
	Projected *struct {
		Sources []struct {
			Secret    *named `json:"secret"`
			ConfigMap *named `json:"configMap"`
		} `json:"sources"`
	} `json:"projected"`
}

type podSpec struct {
	NodeName            string      `json:"nodeName"`
	ServiceAccountName  string      `json:"serviceAccountName"`
	ImagePullSecrets    []named     `json:"imagePullSecrets"`
	Containers          []container `json:"containers"`
	InitContainers      []container `json:"initContainers"`
	EphemeralContainers []container `json:"ephemeralContainers"`
	Volumes             []podVolume `json:"volumes"`
}

// parserOfPods returns the function that parses stored pods. Pods without a node are not
// mirrored, and neither are those that a node made for its own static pods: they would
// give the node rights that it could take by creating one.
func parserOfPods(v vocabulary.Vocabulary) func(services.Object) (*pod, error) {
	annotation := v.Qualified("", "config.mirror")
	return func(o services.Object) (*pod, error) {
		var stored struct {
			Metadata struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
			Spec podSpec `json:"spec"`
		}
		if err := json.Unmarshal(o.JSON, &stored); err != nil {
			return nil, err
		}
		if _, mirrored := stored.Metadata.Annotations[annotation]; mirrored || stored.Spec.NodeName == "" {
			return nil, changes.ErrSkip
		}
		return stored.Spec.uses(o.Key.Name), nil
	}
}

// uses returns what a pod uses.
func (s *podSpec) uses(name string) *pod {
	p := &pod{node: s.NodeName, account: s.ServiceAccountName, secrets: sets.Set[string]{}, configMaps: sets.Set[string]{}, claims: sets.Set[string]{}}
	for _, pull := range s.ImagePullSecrets {
		add(p.secrets, &pull)
	}
	for _, list := range [][]container{s.Containers, s.InitContainers, s.EphemeralContainers} {
		for _, c := range list {
			p.container(c)
		}
	}
	for _, v := range s.Volumes {
		p.volume(v)
		if v.Ephemeral != nil { // its claim is named after both
			p.claims.Insert(name + "-" + v.Name)
		}
	}
	return p
}

func (p *pod) container(c container) {
	for _, e := range c.Env {
		if from := e.ValueFrom; from != nil {
			add(p.secrets, from.Secret)
			add(p.configMaps, from.ConfigMap)
		}
	}
	for _, from := range c.EnvFrom {
		add(p.secrets, from.Secret)
		add(p.configMaps, from.ConfigMap)
	}
}

func (p *pod) volume(v podVolume) {
	add(p.configMaps, v.ConfigMap)
	if v.Secret != nil {
		add(p.secrets, &named{v.Secret.Name})
	}
	if v.AzureFile != nil {
		add(p.secrets, &named{v.AzureFile.Name})
	}
	if v.CSI != nil {
		add(p.secrets, v.CSI.Secret)
	}
	for _, holder := range []secretHolder{v.CephFS, v.Cinder, v.Flex, v.ISCSI, v.RBD, v.ScaleIO, v.StorageOS} {
		if holder.Ref != nil {
			add(p.secrets, &named{holder.Ref.Name})
		}
	}
	if v.Claim != nil {
		add(p.claims, &named{v.Claim.Name})
	}
	if v.Projected != nil {
		for _, source := range v.Projected.Sources {
			add(p.secrets, source.Secret)
			add(p.configMaps, source.ConfigMap)
		}
	}
}

func add(to sets.Set[string], n *named) {
	if n != nil && n.Name != "" {
		to.Insert(n.Name)
	}
}
