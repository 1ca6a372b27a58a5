module github.com/portico-platform/portico/docs

go 1.26.0
