import type { FromTab, ToTab } from './stream-share.ts'

/** What a store needs of an EventSource. */
type Source = Pick<EventSource, 'addEventListener' | 'close' | 'readyState'>

/**
 * Streams over the one connection of this browser.
 * @returns undefined where the browser has no workers that tabs share, or no locks (pages without TLS): each tab has a stream of its own
 */
export function sharedStreams(): ((url: string) => EventSource) | undefined {
  if (!('SharedWorker' in window) || !('locks' in navigator)) return undefined
  const lock = crypto.randomUUID()
  // Held until the tab is gone. The worker, which waits for it, is told of nothing before.
  const held = new Promise<void>((resolve) => {
    void navigator.locks.request(lock, () => {
      resolve()
      return new Promise(() => undefined)
    })
  })
  const worker = new SharedWorker(new URL('./stream-worker.ts', import.meta.url), { type: 'module' })
  const sources = new Map<string, SharedSource>()
  let isBroken = false
  worker.addEventListener('error', () => {
    // Its script cannot be had: streams of this tab fail, and the next ones are its own.
    isBroken = true
    for (const source of sources.values()) source.fail(2)
  })
  worker.port.onmessage = ({ data }: MessageEvent<ToTab>) => {
    const source = sources.get(data.id)
    if (data.op === 'error') source?.fail(data.readyState)
    else source?.dispatchEvent(new MessageEvent(data.kind, { data: data.data, lastEventId: data.lastEventId }))
  }
  const tell = (message: FromTab) => void held.then(() => worker.port.postMessage(message))
  window.addEventListener('pagehide', () => {
    for (const id of sources.keys()) tell({ op: 'close', id })
  })
  return (url) => {
    if (isBroken) return new EventSource(url)
    const id = crypto.randomUUID()
    const source = new SharedSource(() => {
      sources.delete(id)
      tell({ op: 'close', id })
    })
    sources.set(id, source)
    tell({ op: 'open', id, url: new URL(url, document.baseURI).href, lock })
    return source as Source as EventSource // the store uses nothing else of it
  }
}

class SharedSource extends EventTarget {
  readyState = 0
  readonly #onClose: () => void
  #isClosed = false

  constructor(onClose: () => void) {
    super()
    this.#onClose = onClose
  }

  fail(readyState: number): void {
    this.readyState = readyState
    this.dispatchEvent(new Event('error'))
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.readyState = 2
    this.#onClose()
  }
}
