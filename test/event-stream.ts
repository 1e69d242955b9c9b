import { get } from 'node:http'

/** One event as it came, and what a browser would make of it. */
export interface ReceivedEvent {
  readonly event: string
  readonly id: string
  readonly data: string
}

/** Reads server-sent events as the specification of HTML says, comments and retries counted beside. */
export class EventReader implements Disposable {
  readonly events: ReceivedEvent[] = []
  readonly retries: number[] = []
  comments = 0
  isEnded = false
  headers: Readonly<Record<string, unknown>> = {}
  readonly #request
  #rest = ''

  private constructor(url: string, headers: Readonly<Record<string, string>>, opened: (status: number) => void) {
    this.#request = get(url, { headers, agent: false }, (response) => {
      this.headers = response.headers
      response.setEncoding('utf8').on('data', (text: string) => this.#take(text))
      response.on('close', () => {
        this.isEnded = true
      })
      opened(response.statusCode ?? 0)
    })
    this.#request.on('error', () => {
      this.isEnded = true
      opened(0)
    })
  }

  /** @throws where it is refused */
  static async open(url: string, headers: Readonly<Record<string, string>> = {}): Promise<EventReader> {
    return new Promise((resolve, reject) => {
      const reader = new EventReader(url, headers, (status) =>
        status === 200 ? resolve(reader) : reject(new Error(`the stream answered ${status}`)),
      )
    })
  }

  get documents(): readonly Record<string, unknown>[] {
    return this.events.map(({ data }) => JSON.parse(data))
  }

  [Symbol.dispose](): void {
    this.#request.destroy()
  }

  #take(text: string): void {
    const blocks = (this.#rest + text).split('\n\n')
    this.#rest = blocks.pop() ?? ''
    for (const block of blocks) this.#block(block)
  }

  #block(block: string): void {
    const fields: Record<string, string> = {}
    for (const line of block.split('\n')) {
      if (line.startsWith(':')) this.comments++
      else {
        const colon = line.indexOf(':')
        fields[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, '')
      }
    }
    if (fields.retry !== undefined) this.retries.push(Number(fields.retry))
    if (fields.data !== undefined)
      this.events.push({ event: fields.event ?? '', id: fields.id ?? '', data: fields.data })
  }
}
