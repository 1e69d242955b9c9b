import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Messages } from './messages.ts'

const message = (type: string, body: string | Buffer, length = body.length + 4) => {
  const head = Buffer.alloc(5)
  head.write(type, 'latin1')
  head.writeUInt32BE(length, 1)
  return Buffer.concat([head, Buffer.from(body)])
}
const wrong = {
  'no end': message('E', 'SERROR\0C42P01\0'),
  'no end of a field': message('N', 'SNOTICE'),
  'an empty error': message('E', ''),
  'a field without its end': message('E', 'S\0\0C'.slice(0, 1)),
  short: message('Z', 'I', 3),
  nothing: message('R', '', 0),
  'a long error': message('E', '', 2 ** 20 + 1),
  'many columns': message('T', '', 2 ** 15),
}

it('reads the same, however it is cut into pieces, and finds the first that is wrong', () => {
  const whole = fc.oneof(
    fc.constantFrom(
      message('R', Buffer.alloc(4)),
      message('Z', 'I'),
      message('E', 'SERROR\0Mno\0\0'),
      message('N', '\0'),
    ),
    fc.uint8Array({ maxLength: 50 }).map((body) => message('D', Buffer.from(body))),
  )
  const bad = fc.constantFrom(...(Object.keys(wrong) as (keyof typeof wrong)[]), undefined)
  fc.assert(
    fc.property(fc.array(whole, { maxLength: 6 }), bad, fc.infiniteStream(fc.nat(20)), (good, last, cuts) => {
      const messages = new Messages()
      const bytes = Buffer.concat([...good, ...(last ? [wrong[last]] : [])])
      let fault: string | undefined
      for (let at = 0; at < bytes.length && fault === undefined; ) {
        const end = at + 1 + (cuts.next().value as number) // the stream has no end
        fault = messages.fault(bytes.subarray(at, end))
        at = end
      }
      expect(fault === undefined).toBe(last === undefined)
    }),
  )
})

it('takes a million messages of an answer, and few that describe columns', () => {
  const many = (type: string, count: number) =>
    Buffer.concat(Array.from({ length: count }, () => message(type, '\0\0')))
  const messages = new Messages()
  const [rows, ready] = [many('D', 999_000), message('Z', 'I')]
  for (const piece of [rows, many('N', 1000), ready, many('T', 1000), rows, ready, many('T', 1000)])
    expect(messages.fault(piece)).toBeUndefined()
  expect(messages.fault(message('T', '\0\0'))).toMatch(/more messages than an answer has/)
  expect(new Messages().fault(Buffer.concat([rows, many('D', 1001)]))).toMatch(/more messages/)
})
