module github.com/portico-platform/portico/test/conformance/suite

go 1.26

require (
	google.golang.org/protobuf v1.36.12
	sigs.k8s.io/yaml v1.6.0
)

require go.yaml.in/yaml/v2 v2.4.2 // indirect
