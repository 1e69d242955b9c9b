import type { FastifyReply, FastifyRequest } from 'fastify'
import { SignInFailedError } from '#identity'
import { problemOf } from './problem.ts'

/** A browser that goes from address to address, with a person before it; programs ask for JSON. */
const isForPeople = ({ headers: { accept } }: FastifyRequest): boolean => accept?.includes('text/html') ?? false

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text: string): string => text.replace(/[&<>"]/g, (char) => escapes[char] ?? '')

/**
 * Tells a person in words why the way to the provider and back ended here.
 * @returns false where nobody would read it: the problem goes out as everywhere
 */
export function explainToPerson(error: unknown, request: FastifyRequest, reply: FastifyReply): boolean {
  const { status, body, unexpected } = problemOf(error, request.id)
  if (unexpected || !isForPeople(request)) return false
  if (error instanceof SignInFailedError && error.cookies.length > 0) reply.header('set-cookie', [...error.cookies])
  if (body.retryAfterSeconds !== undefined) reply.header('retry-after', String(body.retryAfterSeconds))
  reply
    .code(status)
    .type('text/html; charset=utf-8')
    .send(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Not signed in</title>
<h1>You are not signed in</h1>
<p>${escaped(body.error)}</p>
<p><a href="/">Back to the start</a></p>
<p>Code ${escaped(body.code)}, request ${escaped(body.requestId)}</p>
`)
  return true
}
