"""The class was renamed, its manifest was not."""


class Renamed:
    def validate_inputs(self, payload):
        return {"ok": True}

    def execute(self, payload, context):
        return {"ok": True, "result": {}}
