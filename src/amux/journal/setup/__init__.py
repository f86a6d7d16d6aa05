"""Setting a workspace up, handing agents what they need, taking it back, the doctor."""
