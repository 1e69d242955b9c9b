import { type Static, Type } from 'typebox'

const Text = (maxLength: number, description: string) => Type.String({ maxLength, description })

/** Where the credentials of a connection were accepted, and the Secret as it was then. Nothing of what it holds. */
export const AcceptedCredentials = Type.Object(
  {
    secret: Text(508, 'namespace/name of the Secret'),
    uid: Text(128, 'uid of the Secret'),
    resourceVersion: Text(128, 'version of the Secret'),
    endpoint: Text(2048, 'scheme, host and port that accepted them'),
    proxy: Type.Optional(Text(2048, 'scheme, host and port of the proxy they went through')),
  },
  {
    description:
      'the endpoint that accepted the credentials: another one gets nothing until the Secret changes, or its annotation clusterpulse.io/endpoint names it (condition CredentialsHeld)',
  },
)
export type AcceptedCredentials = Static<typeof AcceptedCredentials>
