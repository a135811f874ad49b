"""The loop itself, on ports alone: observe, plan, dispatch, verify."""
