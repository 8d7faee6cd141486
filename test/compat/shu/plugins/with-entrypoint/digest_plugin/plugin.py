from tiny_markup import bold

from digest_plugin import util


class Plugin:
    def get_schema(self):
        return None

    async def execute(self, params, context, host):
        return {"status": "success", "data": {"text": bold(util.shout(params["text"])), "params": sorted(params)}}
