//! FIFOs, devices and odd names at the paths of inputs and outputs.
