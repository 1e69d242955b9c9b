import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readResult } from './stored.ts'
import { probe, serveBytes, targetAt } from './testing/registry-server.ts'

const crlf = '\r\n'
const statusLine = fc.constantFrom(
  ...['HTTP/1.1 200 OK', 'HTTP/1.1 401 Unauthorized', 'HTTP/1.1 302 Found', 'HTTP/1.1 100 Continue', 'HTTP/1.1 204 No'],
  ...['HTTP/1.1 999 ?', 'HTTP/1.0 200', 'HTTP/2 200', 'HTTP/1.1 101 Switching Protocols', 'garbage', ''],
)
const header = fc.constantFrom(
  ...['content-length: 0', 'content-length: 5', 'content-length: -1', 'content-length: 99999999999999999999'],
  ...['content-length: 3\r\ncontent-length: 4', 'transfer-encoding: chunked', 'transfer-encoding: gzip, chunked'],
  ...[
    'location: /v2/',
    'location: ',
    'location: http://[',
    'location: //127.0.0.2/x',
    'location: \u0000',
    'connection: close',
  ],
  ...[
    'www-authenticate: Bearer',
    'www-authenticate: Bearer realm=""',
    'www-authenticate: Bearer realm="/t",service="\u00ff"',
  ],
  ...[
    'www-authenticate: Basic',
    'www-authenticate: ,,,,',
    'link: <>; rel="next"',
    'link: </v2/_catalog?x>; rel="next"',
  ],
  ...['content-type: text/html', 'docker-distribution-api-version: registry/2.0', ': nameless', 'a b: c', ' folded'],
)
const body = fc.oneof(
  fc.constantFrom(
    '',
    '{}',
    '[]',
    'null',
    '{"repositories":[1,null,{},"a"]}',
    '{"repositories":{}}',
    '{"token":{}}',
    '<html>',
    '5\r\nhello\r\n0\r\n\r\n',
    'ffffffffffffffff\r\n',
  ),
  fc.string({ maxLength: 40 }),
)
const answer = fc
  .tuple(statusLine, fc.array(header, { maxLength: 5 }), body)
  .map(([first, headers, text]) => [first, ...headers, '', text].join(crlf))

describe('whatever a registry sends', () => {
  it('a probe ends in time with a whole result, and tells no secret', () =>
    fc.assert(
      fc.asyncProperty(fc.array(answer, { minLength: 1, maxLength: 4 }), fc.boolean(), async (answers, closes) => {
        let count = 0
        await using server = await serveBytes((socket) => {
          socket.on('data', (question) => {
            // It repeats what it was asked, credentials and all.
            const echo = /authorization: (.*)\r\n/i.exec(question.toString())?.[1] ?? ''
            socket.write((answers[count++ % answers.length] ?? '').replace('registry/2.0', `registry/2.0 ${echo}`))
            if (closes) socket.end()
          })
        })
        const result = await probe(
          targetAt(server.url, {
            credentials: { username: 'robot', password: 'the-secret-password' },
            checkCatalog: true,
            healthCheckPaths: ['/health'],
            timeoutMs: 60,
          }),
        )
        expect(readResult(JSON.parse(JSON.stringify(result)))).toEqual(result)
        expect(result.available).toBe(result.code === '')
        expect(result.health === 'unhealthy').toBe(!result.available)
        const told = JSON.stringify(result)
        expect(told).not.toContain('the-secret-password')
        expect(told).not.toContain(Buffer.from('robot:the-secret-password').toString('base64'))
      }),
      { numRuns: 120 },
    ))
})
