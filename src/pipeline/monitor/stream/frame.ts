/** What is said to many clients, encoded once for all of them. */
export class Body {
  readonly data: string
  /** absent: an event without a name, as the original sends it */
  readonly event: string | undefined

  constructor(data: string, event?: string) {
    this.data = data
    this.event = event
  }
}

/** A body on its way, with the id that it has for all who are told of it together. */
export class Frame {
  readonly id: string
  readonly body: Body
  /** of several that wait for a slow client the newest of each slot is sent; absent: none may be left out */
  readonly slot: string | undefined
  #chunk: Buffer | undefined
  #message: string | undefined

  constructor(id: string, body: Body, slot?: string) {
    this.id = id
    this.body = body
    this.slot = slot
  }

  /** As a server-sent event. */
  get event(): string {
    const { id, body } = this
    return `id: ${id}\n${body.event ? `event: ${body.event}\n` : ''}data: ${body.data}\n\n`
  }

  /** The event as one chunk of an answer (RFC 9112, 7.1): nothing is left to do for each client. */
  get chunk(): Buffer {
    this.#chunk ??= chunkOf(this.event)
    return this.#chunk
  }

  /** As message of a WebSocket: what has a name is put into an envelope. */
  get message(): string {
    const { id, body } = this
    if (body.event === undefined) return body.data
    this.#message ??= `{"id":${JSON.stringify(id)},"event":${JSON.stringify(body.event)},"data":${body.data}}`
    return this.#message
  }
}

/** A text as one chunk of an answer. */
export function chunkOf(text: string): Buffer {
  const length = Buffer.byteLength(text)
  return Buffer.from(`${length.toString(16)}\r\n${text}\r\n`)
}
