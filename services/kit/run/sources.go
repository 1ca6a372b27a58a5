package run

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

const (
	configFlag = "config"
	// environment begins the names of environment variables that set flags: PORTICO_SECURE_PORT is --secure-port.
	environment = "PORTICO_"
	// maxConfig bounds a configuration file, in bytes.
	maxConfig = 1 << 20
)

// Expand returns the arguments of a process, preceded by a --flag=value for what its environment and its configuration
// file set. The command line has precedence over the environment, and that over the file; lists are not joined.
// Variables that name no flag are ignored, since orchestrators set some, and so are empty ones. The file is YAML or
// JSON with the names of flags as keys. The error is an ErrUsage that names the variable, or the file and the key.
func Expand(app App, args, environ []string) ([]string, error) {
	flags, err := flagsOf(app)
	if err != nil {
		return nil, err
	}
	e := expansion{flags: flags, given: map[string]bool{}}
	file := ""
	if err := flags.ParseAll(args, func(f *pflag.Flag, value string) error {
		if e.given[f.Name] = true; f.Name == configFlag {
			file = value
		}
		return nil
	}); err != nil {
		return args, nil //nolint:nilerr // Start reports it
	}
	if err := e.environment(environ); err != nil {
		return nil, err
	}
	if !e.given[configFlag] || file == "" {
		file = flags.Lookup(configFlag).Value.String() // of the environment
	}
	if file != "" {
		if err := e.file(file); err != nil {
			return nil, Usagef("--%s: %s: %v", configFlag, file, err)
		}
	}
	return append(e.args, args...), nil
}

// Configuration writes the settings of a process as a configuration file: those that differ from their defaults, or all.
// The order of the arguments is that of Expand.
func Configuration(w io.Writer, app App, args []string, all bool) error {
	flags, err := flagsOf(app)
	if err != nil {
		return err
	}
	if err := flags.Parse(args); err != nil {
		return ParseError(flags, err)
	}
	if flags.NArg() > 0 {
		return Usagef("unexpected argument %q", flags.Arg(0))
	}
	values := map[string]any{}
	flags.VisitAll(func(f *pflag.Flag) {
		if (!all && !f.Changed) || f.Hidden || f.Name == configFlag || f.Name == "help" {
			return
		}
		var value any = f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			value = list.GetSlice()
		} else if f.Value.Type() == "stringToString" {
			value, _ = flags.GetStringToString(f.Name)
		} else if kind := f.Value.Type(); strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "uint") || kind == "bool" || kind == "float64" {
			value = json.RawMessage(f.Value.String())
		}
		values[f.Name] = value
	})
	out, err := yaml.Marshal(values)
	if err == nil {
		_, err = w.Write(out)
	}
	return err
}

// FlagNames returns the flags of an app, as in --secure-port, for completion.
func FlagNames(app App) (names []string) {
	flags, err := flagsOf(app)
	if err != nil {
		return nil
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

// expansion collects arguments.
type expansion struct {
	flags *pflag.FlagSet
	given map[string]bool // by the command line, or by what has precedence
	args  []string
}

func (e *expansion) environment(environ []string) error {
	set := map[string]string{}
	for _, variable := range environ {
		if name, value, ok := strings.Cut(variable, "="); ok && strings.HasPrefix(name, environment) && value != "" {
			set[name] = value
		}
	}
	var err error
	e.flags.VisitAll(func(f *pflag.Flag) {
		name := environment + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value, ok := set[name]; ok && err == nil {
			if err = e.add(f, []string{value}); err != nil {
				err = Usagef("%s: %v", name, err)
			}
		}
	})
	maps.Copy(e.given, changed(e.flags))
	return err
}

func (e *expansion) file(path string) error {
	values, err := readConfig(path)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		f := e.flags.Lookup(name)
		if f == nil || name == configFlag {
			return fmt.Errorf("unknown key %q%s", name, suggestion(e.flags, "", name))
		}
		texts, err := textsOf(f, values[name])
		if err == nil {
			err = e.add(f, texts)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// add adds the values of a flag, unless something with precedence has set it.
func (e *expansion) add(f *pflag.Flag, values []string) error {
	if e.given[f.Name] {
		return nil
	}
	for _, value := range values {
		if err := e.flags.Set(f.Name, value); err != nil {
			return parseCause(err, value)
		}
		e.args = append(e.args, "--"+f.Name+"="+value)
	}
	return nil
}

func changed(flags *pflag.FlagSet) map[string]bool {
	names := map[string]bool{}
	flags.Visit(func(f *pflag.Flag) { names[f.Name] = true })
	return names
}

// readConfig returns the values of a configuration file. Duplicate keys are errors.
func readConfig(path string) (map[string]any, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if info.Size() > maxConfig {
		return nil, fmt.Errorf("%d bytes are more than the %d of a configuration file", info.Size(), maxConfig)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	asJSON, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	values := map[string]any{}
	if err := decoder.Decode(&values); err != nil {
		return nil, errors.New("it is not a map from names of flags to values")
	}
	return values, nil
}

// textsOf returns the value of a key as arguments of its flag.
func textsOf(f *pflag.Flag, value any) ([]string, error) {
	switch value := value.(type) {
	case string, bool, json.Number:
		return []string{fmt.Sprint(value)}, nil
	case []any:
		if _, ok := f.Value.(pflag.SliceValue); !ok {
			return nil, errors.New("must be a single value, not a list")
		}
		items := make([]string, len(value))
		for i, item := range value {
			switch item.(type) {
			case string, bool, json.Number:
				items[i] = fmt.Sprint(item)
			default:
				return nil, errors.New("must be a list of texts or numbers")
			}
		}
		if f.Value.Type() == "stringArray" {
			return items, nil
		}
		return joined(items)
	case map[string]any:
		if f.Value.Type() != "stringToString" {
			return nil, errors.New("must be a single value or a list, not a map")
		}
		var items []string
		for _, key := range slices.Sorted(maps.Keys(value)) {
			items = append(items, fmt.Sprintf("%s=%v", key, value[key]))
		}
		return joined(items)
	}
	return nil, errors.New("has no value")
}

// joined returns one argument with all items, with quotes where an item has a comma.
func joined(items []string) ([]string, error) {
	if len(items) == 0 {
		return nil, nil
	}
	var line strings.Builder
	w := csv.NewWriter(&line)
	if err := w.Write(items); err != nil {
		return nil, err
	}
	w.Flush()
	return []string{strings.TrimSuffix(line.String(), "\n")}, w.Error()
}
