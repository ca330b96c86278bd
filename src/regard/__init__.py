"""Train a Transformer on your own data on the machine you have, see what every head looks at, and ship it."""
