"""The server of Shu plugins.

server    frames in, frames out; one call at a time, on an event loop that stays
about     what the host says of the plugin at the start
load      the package on the path, and the plugin's class
guard     imports that a plugin may not make
describe  what the class says of its operations and actions
run       one call: execute, perform_action, preview
answer    what came of it, read and spelled for the wire
call      the call's own line to the host, and what the plugin is told of it
host      the host object, and what may be reached through it
services  cache, storage, cursor, secrets, identity, auth and the like
kb, http, log, utils  the larger services
files     bytes on their way to the host
records   objects whose members may be read in either way

The host object asks through a function, so that shu_plugin_sdk.testing hands
out the same one without a host.
"""
