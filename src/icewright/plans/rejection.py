"""What is raised of a plan that its checker does not accept."""

from icewright.core.errors import IcewrightError


class PlanRejected(IcewrightError):
    """The checker found the planner wrong: a defect of icewright. Nothing is done to the table."""

    code = "plan-refused"
