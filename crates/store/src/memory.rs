//! The in-memory back end for simulation.
