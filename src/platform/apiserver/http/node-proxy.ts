import { ApiError } from '../status.ts'
import { checkAccess } from './authorize.ts'
import type { Call } from './call.ts'
import { sendJson } from './respond.ts'

/** `/api/v1/nodes/{name}/proxy/…`: only reading, and only where something answers for kubelets. */
export async function handleNodeProxy(call: Call, [version = '', plural = '', name, , ...path]: readonly string[]) {
  const target = { group: '', version, plural, namespace: undefined, name, subresource: 'proxy' }
  checkAccess(call, target)
  const { nodeProxy } = call.server
  const notFound = () => new ApiError('NotFound', 'the server could not find the requested resource', {})
  if (!nodeProxy || name === undefined || version !== 'v1') throw notFound()
  if (call.method !== 'GET')
    throw new ApiError('MethodNotAllowed', 'the server does not allow this method on the requested resource', {})
  const answer = nodeProxy(name, `/${path.join('/')}`)
  if (!answer) throw notFound()
  return sendJson(call, 200, answer)
}
