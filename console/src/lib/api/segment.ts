/** Segments of the paths of the API, of which the host takes one spelling alone. */

/** Returns a text as a segment of a path: as RFC 3986 has segments, with nothing escaped that need not be. */
export function segment(text: string): string {
  return encodeURIComponent(text)
    .replace(/%(?:24|26|2B|2C|3A|3B|3D|40)/g, decodeURIComponent)
    .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}
