import { type FromTab, StreamShare, type ToTab } from './stream-share.ts'

// Runs beside all tabs of a browser, as long as one of them is open.
const shares: StreamShare[] = []

const shareFor = (url: string): StreamShare => {
  const free = shares.find((share) => share.hasRoomFor(url))
  if (free) return free
  const share = new StreamShare({ openStream: (address) => new EventSource(address) })
  shares.push(share)
  return share
}

function leave(id: string): void {
  for (const share of [...shares]) {
    share.remove(id)
    if (share.size === 0) shares.splice(shares.indexOf(share), 1)
  }
}

addEventListener('connect', (event) => {
  const [port] = (event as MessageEvent).ports
  if (!port) return
  const open = new Set<string>()
  let isGuarded = false
  port.onmessage = ({ data }: MessageEvent<FromTab>) => {
    if (data.op === 'close') {
      open.delete(data.id)
      leave(data.id)
      return
    }
    if (!isGuarded) {
      isGuarded = true
      // The tab holds it as long as it lives: a tab that crashed says no goodbye.
      void navigator.locks.request(data.lock, () => {
        for (const id of open) leave(id)
        open.clear()
      })
    }
    open.add(data.id)
    shareFor(data.url).add(data.id, data.url, (message: ToTab) => port.postMessage(message))
  }
})
