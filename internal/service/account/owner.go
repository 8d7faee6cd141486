package account

// SecretOwner is for whom connected accounts are kept among the secrets. No
// plugin has such a name, and no command shows or sets what is there.
const SecretOwner = ":accounts"
