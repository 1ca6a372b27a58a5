module github.com/portico-platform/portico/authz

go 1.26.0

require github.com/portico-platform/portico/services v0.0.0

replace github.com/portico-platform/portico/services => ../services
