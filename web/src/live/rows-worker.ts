import { packedFleetAnswer, type ToRead, type WasRead } from './fleet-answer.ts'
import { buffersOf } from './packed-row.ts'

// Runs beside a page that reads many rows.
addEventListener('message', ({ data: { nth, body } }: MessageEvent<ToRead>) => {
  const tell = (read: WasRead, given: ArrayBuffer[] = []) => postMessage(read, { transfer: given })
  try {
    const read = packedFleetAnswer(body)
    tell({ nth, ...read }, buffersOf(read.answer.items))
  } catch (cause) {
    tell({ nth, failure: String(cause) })
  }
})
