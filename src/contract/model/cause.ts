const ofTest = /^connection test failed: /
const request = /\b(?:GET|LIST|WATCH|POST) \S+: /g

/** Why something failed, without the request that was tried: that is for whoever mends it. */
export const causeIn = (message: string): string => message.replace(ofTest, '').replaceAll(request, '')
