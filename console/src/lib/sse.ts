/**
 * Server-sent events over fetch. EventSource hears only events whose names it was told
 * before, and says nothing of why a stream was refused.
 */

/** An event of a stream. */
export interface Message {
  id: string;
  event: string;
  data: string;
}

/** Reads the events of an answer until it ends. retry, in milliseconds, is told where the stream says it. */
export async function* read(response: Response, retry: (ms: number) => void = () => {}): AsyncGenerator<Message> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let message: Message = { id: "", event: "message", data: "" };
  let data: string[] = [];
  let named = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0 || named) yield { ...message, data: data.join("\n") };
          message = { ...message, event: "message", data: "" };
          data = [];
          named = false;
          continue;
        }
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (name === "data") data.push(text);
        else if (name === "event") [message.event, named] = [text, true];
        else if (name === "id") message.id = text;
        else if (name === "retry" && /^\d+$/.test(text)) retry(Number(text));
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
