import { packedFleetAnswer, type ToRead, type WasRead } from './fleet-answer.ts'

// Runs beside a page that reads many rows.
addEventListener('message', ({ data: { nth, body } }: MessageEvent<ToRead>) => {
  const tell = (read: WasRead) => postMessage(read)
  try {
    tell({ nth, ...packedFleetAnswer(body) })
  } catch (cause) {
    tell({ nth, failure: String(cause) })
  }
})
