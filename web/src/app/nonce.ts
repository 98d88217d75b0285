import { setNonce } from "get-nonce";

/** The nonce that the service put into this page: without it no style sheet made here would apply. */
export const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? "";

setNonce(nonce);
