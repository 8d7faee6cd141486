package host

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/catalog/scaffold"
	"github.com/mortise-dev/mortise/internal/catalog/signed"
	"github.com/mortise-dev/mortise/plugin"
)

// ReadPackage reads the package in a directory, as it is linked for development.
func ReadPackage(dir string) (plugin.Package, *plugin.Manifest, error) {
	m, err := contract.Read(dir)
	if err != nil {
		return plugin.Package{}, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", dir, err)
	}
	tree, _ := contract.Tree(dir)
	return plugin.Package{Dir: tree, Dev: true}, m, nil
}

// Newer reports whether version a comes after version b.
func Newer(a, b string) bool { return registry.Newer(a, b) }

// NotBuilt is the error of [NewPlugin] where the plugin was written and its program not
// built.
type NotBuilt = scaffold.NotBuilt

// BuildGo is the command that builds a plugin in Go.
const BuildGo = scaffold.BuildGo

// PluginLanguages are those that a plugin can be begun in.
var PluginLanguages = scaffold.Languages

// PluginContracts are those that a plugin can be begun for, with their languages.
var PluginContracts = scaffold.Contracts

// PluginTemplate returns the language to give to [NewPlugin] for a contract; either may be "".
func PluginTemplate(contract, lang string) (string, error) { return scaffold.Template(contract, lang) }

// NewPlugin writes the files of a plugin into dir, and returns their names.
func NewPlugin(dir, name, lang string) ([]string, error) { return scaffold.New(dir, name, lang) }

// A PackedPlugin is a package file that was made.
type PackedPlugin = registry.Packed

// PackPlugin makes a package file of the plugin in dir at a path, "" for NAME-VERSION.tar.gz
// in the working directory, and returns where it is. Files that look like secrets are
// refused, unless secrets is set, and a file that is there is, unless force is.
func PackPlugin(ctx context.Context, dir, at string, secrets, force bool) (PackedPlugin, string, error) {
	return registry.PackFile(ctx, dir, at, secrets, force)
}

// NewSigningKey makes a key for [SignPackage], writes it to a file that its owner alone may
// read and its public half beside it as FILE.pub, and returns that as one line.
func NewSigningKey(file string) (string, error) {
	key, err := signed.Generate()
	if err != nil {
		return "", err
	}
	if err := writeNew(file, key.File(), 0o600); err != nil {
		return "", err
	}
	return key.PublicKey.String(), writeNew(file+".pub", key.PublicKey.File(), 0o644)
}

// SignPackage writes the signature of a package file beside it, as FILE.minisig, and returns
// where it is and the key's id.
func SignPackage(file, keyFile string) (signature, key string, err error) {
	text, err := readSmall(keyFile)
	if err != nil {
		return "", "", err
	}
	secret, err := signed.ParseSecretKey(text)
	if err != nil {
		return "", "", plugin.Errorf(plugin.CodeInvalidInput, "%s: %s", keyFile, plugin.AsError(err).Message)
	}
	content, err := os.Open(file)
	if err != nil {
		return "", "", plugin.Errorf(plugin.CodeInvalidInput, "%s cannot be read: %w", file, err)
	}
	defer content.Close()
	made, err := secret.Sign(content, "file:"+filepath.Base(file))
	if err != nil {
		return "", "", err
	}
	signature = file + signed.Suffix
	return signature, secret.ID.String(), os.WriteFile(signature, made, 0o644)
}

// VerifyPackage returns who signed a package file, with one public key or, where key is
// empty, by whom a host trusts. A missing signature, one of an unknown key and one that does not fit are
// invalid_input.
func VerifyPackage(file, key string, trust signed.Trust) (string, error) {
	text, err := readSmall(file + signed.Suffix)
	if err != nil {
		return "", err
	}
	if key != "" {
		trust = signed.Trust{Publishers: []signed.Publisher{{Name: "key", Keys: []string{key}}}}
		if _, err := signed.ParsePublicKey(key); err != nil {
			return "", err
		}
	}
	content, err := os.Open(file)
	if err != nil {
		return "", plugin.Errorf(plugin.CodeInvalidInput, "%s cannot be read: %w", file, err)
	}
	defer content.Close()
	by, err := trust.Verify(text, content)
	if err == nil && by == "" {
		err = plugin.Errorf(plugin.CodeInvalidInput, "%s is signed with a key that is not trusted here: see plugins.trust in mortise.yaml, or give the key", file)
	}
	return string(by), err
}

func readSmall(file string) ([]byte, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s cannot be read: %w", file, err)
	}
	defer opened.Close()
	return io.ReadAll(io.LimitReader(opened, signed.MaxSignature+1))
}

// writeNew writes a file that is not there yet.
func writeNew(file string, text []byte, mode os.FileMode) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return plugin.Errorf(plugin.CodeConflict, "%s is there already", file)
	} else if err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "%s cannot be written: %w", file, err)
	}
	_, err = out.Write(text)
	return errors.Join(err, out.Close())
}
