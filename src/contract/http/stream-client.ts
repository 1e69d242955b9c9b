import type { StreamMessage } from './stream.ts'

/** A message of the stream, with the id to come back with where it has one. */
export type StreamedMessage = StreamMessage & { readonly id?: string }

/** Text of server-sent events, piece by piece, as messages (HTML standard, 9.2.6). Comments and `retry` are passed over. */
export class EventReader {
  #text = ''

  take(piece: string): StreamedMessage[] {
    const blocks = (this.#text + piece).split('\n\n')
    this.#text = blocks.pop() ?? ''
    return blocks.flatMap((block) => messageOf(block) ?? [])
  }
}

function messageOf(block: string): StreamedMessage | undefined {
  let [kind, data, id] = ['message', '', '']
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    const value = line.slice(colon + 1).replace(/^ /, '')
    if (line.startsWith('event:')) kind = value
    else if (line.startsWith('data:')) data += value
    else if (line.startsWith('id:')) id = value
  }
  if (data === '') return undefined
  // The hub's contract tests hold it to this type.
  return { ...(JSON.parse(data) as object), kind, ...(id && { id }) } as StreamedMessage
}

/** Messages of one answer, until it ends. @throws what reading throws */
export async function* messagesIn(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamedMessage> {
  const events = new EventReader()
  const decoder = new TextDecoder()
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield* events.take(decoder.decode(value, { stream: true }))
    }
  } finally {
    await reader.cancel().catch(() => undefined) // it ended badly already, which was said above
  }
}
