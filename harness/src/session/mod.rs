//! A study under way: launch, ready, replay, stop, in the plan's order.
