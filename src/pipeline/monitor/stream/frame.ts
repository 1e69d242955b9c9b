/** What is said to many clients, encoded once for all of them. */
export class Body {
  readonly data: string
  /** absent: an event without a name, as the original sends it */
  readonly event: string | undefined
  #sse: Buffer | undefined
  #message: string | undefined

  constructor(data: string, event?: string) {
    this.data = data
    this.event = event
  }

  /** As server-sent event, without its id. */
  get sse(): Buffer {
    this.#sse ??= Buffer.from(`${this.event ? `event: ${this.event}\n` : ''}data: ${this.data}\n\n`)
    return this.#sse
  }

  /** As message of a WebSocket: what has a name is put into an envelope. */
  message(id: string): string {
    if (this.event === undefined) return this.data
    this.#message ??= `"event":${JSON.stringify(this.event)},"data":${this.data}}`
    return `{"id":${JSON.stringify(id)},${this.#message}`
  }
}

/** A body on its way to one client. */
export interface Frame {
  readonly id: string
  readonly body: Body
  /** of several that wait for a slow client the newest of each slot is sent; absent: none may be left out */
  readonly slot?: string
}
