try:
    from httpx import (
        AsyncClient,
    )
except ImportError:
    AsyncClient = None


class Plugin:
    def get_schema(self):
        return None

    async def execute(self, params, context, host):
        return {"status": "success"}
