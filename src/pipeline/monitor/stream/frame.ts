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
  #plain: Buffer | undefined
  #message: string | undefined

  constructor(id: string, body: Body, slot?: string) {
    this.id = id
    this.body = body
    this.slot = slot
  }

  /** As a server-sent event. */
  get plain(): Buffer {
    const { id, body } = this
    this.#plain ??= Buffer.from(`id: ${id}\n${body.event ? `event: ${body.event}\n` : ''}data: ${body.data}\n\n`)
    return this.#plain
  }

  /** As message of a WebSocket: what has a name is put into an envelope. */
  get message(): string {
    const { id, body } = this
    if (body.event === undefined) return body.data
    this.#message ??= `{"id":${JSON.stringify(id)},"event":${JSON.stringify(body.event)},"data":${body.data}}`
    return this.#message
  }
}
