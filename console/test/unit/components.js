// The components that tests render to HTML, as they are before anything is pressed, with the
// modules whose classes they share.
import { render } from "svelte/server";
import Consent from "../../src/components/Consent.svelte";
import JsonTree from "../../src/components/JsonTree.svelte";
import Series from "../../src/components/Series.svelte";

export * as consents from "../../src/lib/consent.ts";
export * as json from "../../src/lib/json.ts";
export const consent = (props) => render(Consent, { props }).body;
export const jsonTree = (props) => render(JsonTree, { props }).body;
export const series = (props) => render(Series, { props }).body;
