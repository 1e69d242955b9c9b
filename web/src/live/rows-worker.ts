import { packedFleetAnswer, type ToRead, type WasRead } from './fleet-answer.ts'

// Runs beside a page that reads many rows.
addEventListener('message', ({ data: { nth, body } }: MessageEvent<ToRead>) => {
  const tell = (read: WasRead) => postMessage(read)
  packedFleetAnswer(body).then(
    (read) => tell({ nth, ...read }),
    (cause: unknown) => tell({ nth, failure: String(cause) }),
  )
})
