"""Who answers a call: the embedded runtime in `extractive`, model servers in `sglang`. Each is a ModelRuntime of `contracts.ports`."""
