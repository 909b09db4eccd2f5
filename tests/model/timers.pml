/* timers.pml - timers in buckets: a list says which buckets there are, and owners fire what is due in them.
 *
 * Transactions are strictly serializable: whoever makes one reads in steps of its own, and then ONE atomic step finds all that
 * as it was read and writes, or it starts over. Any answer may be lost: what was applied is taken for failed, and tried again.
 * A setter's own command id tells it that it has set its timer. Cancels and drops are tried again without one.
 *
 * There are two owners at once. Each may die at every step, and another one begins where it was. Time goes on at any time,
 * and whenever anybody looks at a clock it shows that time or one before: clocks lag, and go back. A timer may be set before
 * its time, in its minute and after it.
 *
 * At the end all others are gone, all times have passed, and one owner goes through the buckets once more.
 */
#define B(x) (1<<(x))
#if SCEN==1            /* two timers in one minute */
#define NB 1
#define NT 2
#define MAXNOW 2
hidden byte due[2] = {0,1};           hidden byte bk[2] = {0,0};     hidden byte over[1] = {2};     hidden byte in[1] = {3};
#elif SCEN==2          /* each in a minute of its own */
#define NB 2
#define NT 2
#define MAXNOW 2
hidden byte due[2] = {0,1};           hidden byte bk[2] = {0,1};     hidden byte over[2] = {1,2};   hidden byte in[2] = {1,2};
#elif SCEN==3          /* one */
#define NB 1
#define NT 1
#define MAXNOW 2
hidden byte due[1] = {1};             hidden byte bk[1] = {0};       hidden byte over[1] = {2};     hidden byte in[1] = {1};
#elif SCEN==4          /* two in one minute, one in the next */
#define NB 2
#define NT 3
#define MAXNOW 2
hidden byte due[3] = {0,0,1};         hidden byte bk[3] = {0,0,1};   hidden byte over[2] = {1,2};   hidden byte in[2] = {3,4};
#elif SCEN==5          /* what fires sets one in the same minute, which may be over */
#define CHAIN
#define NB 1
#define NT 2
#define MAXNOW 2
hidden byte due[2] = {0,1};           hidden byte bk[2] = {0,0};     hidden byte over[1] = {2};     hidden byte in[1] = {3};
#elif SCEN==6          /* what fires sets one in a minute before its own */
#define CHAIN
#define NB 2
#define NT 2
#define MAXNOW 2
hidden byte due[2] = {1,0};           hidden byte bk[2] = {1,0};     hidden byte over[2] = {1,2};   hidden byte in[2] = {2,1};
#endif
#ifdef CHAIN           /* timer 0, when it fires, sets timer 1 in that transaction */
#define NS 1           /* setters */
#define NEXT(t) ((t)==0)
#define PASSES 2       /* the first may set what the second fires */
#else
#define NS NT
#define NEXT(t) 0
#define PASSES 1
#endif
#ifndef NK
#define NK 1           /* cancellers, of the first timers */
#endif
#ifndef POISON
#define POISON 0       /* those that may fail for good; with any, timer 0's retrier and its operator */
#endif
#if POISON
#define NH 2
#else
#define NH 0
#endif

byte list;                                      /* buckets */
byte row, aside;                                /* timers in their buckets, timers that have failed */
byte slot;                                      /* command ids of timers that are taken */
byte set;                                       /* timers that were set: the command ids of their setters */
byte now, ended;
byte fired, taken;                              /* ghosts: its effect is there; it was cancelled or dropped */
hidden byte LISTED, ONCE, EARLY, TOLD, FIRED;
#ifdef REACH
byte seen;                                      /* ghost */
#define CLOSED 1
#define REOPENED 2
#define TOO_LATE 4     /* a cancel, behind the fire */
#define REFUSED 8      /* a fire, behind another owner's */
#define AGAIN 16       /* a fire that has found its own */
#define RETRIED 32     /* fired from aside */
#define SAW(what) seen=seen|(what)
#else
#define SAW(what) skip
#endif

#ifdef NOLIST          /* mutation: the setter does not validate that the bucket is in the list */
#define LIST_AS(t,l) 1
#else
#define LIST_AS(t,l) ((list&B(bk[t]))==(l))
#endif
#ifdef NOEMPTY         /* mutation: the closer does not validate that nothing is in the bucket */
#define EMPTY(b) 1
#else
#define EMPTY(b) ((row&in[b])==0)
#endif
#ifdef NOROW           /* mutation: who fires does not validate that the timer is there */
#define THERE(t) 1
#else
#define THERE(t) (row&B(t))
#endif
#if defined(NOTAKE) || defined(NOSLOT)
#define SLOT_AS(t,s) 1
#else
#define SLOT_AS(t,s) ((slot&B(t))==(s))
#endif
#ifdef NOTIME          /* mutation: the transaction does not ask what time it is */
#define DUE(t,at) 1
#else
#define DUE(t,at) (due[t]<=(at))
#endif
#ifdef NOCANCEL        /* mutation: a cancel does not validate that what it found is there */
#define FOUND_AS(t,r,a) 1
#else
#define FOUND_AS(t,r,a) ((row&B(t))==(r) && ((r) || (aside&B(t))==(a)))
#endif

inline listed() {
  LISTED = 1; b=0;
  do :: b<NB -> LISTED = LISTED && ((row&in[b])==0 || (list&B(b))); b++ :: else -> break od;
  b=0; assert(LISTED) }
inline put(t,l) {                               /* l: whether its bucket was in the list */
#ifdef REACH
  if :: !(l) && (seen&CLOSED) -> SAW(REOPENED) :: else fi;
#endif
  row=row|B(t); set=set|B(t); list=((l) -> list : list|B(bk[t])) }
inline give_up(t) { TOLD = !(fired&B(t)); assert(TOLD); taken=taken|B(t) }
inline fire(t,s,l) {                            /* what it does, if its id was free */
  if
  :: (s)==0 ->
     EARLY = (due[t]<=at); assert(EARLY);
     ONCE = !(fired&B(t)); assert(ONCE);
     TOLD = !(taken&B(t)); assert(TOLD);
     fired=fired|B(t);
     if :: NEXT(t) -> put(1,l) :: else fi
  :: else
  fi;
#if !defined(NOTAKE) && !defined(NOSLOT)
  slot=slot|B(t)
#endif
}
inline clock(c,exact) { c=0; do :: c<now -> c++ :: c==now || !(exact) -> break od }

proctype setter(byte t) {
  byte l, b;
again:
  atomic {
    if
    :: set&B(t) -> goto stop                                     /* the answer got lost */
    :: !(set&B(t)) -> l=list&B(bk[t])
    :: goto stop
    fi };
  atomic {
    if
    :: LIST_AS(t,l) -> put(t,l); listed(); if :: goto stop :: goto again fi
    :: !LIST_AS(t,l) -> goto again
    :: goto stop
    fi };
stop: atomic { l=0; ended++ }
}

proctype canceller(byte t) {
  byte r, a;
again:
  atomic { r=0; a=0; if :: set&B(t) -> r=row&B(t) :: goto stop fi };
  atomic { r==0 -> a=aside&B(t) } unless { r };
  atomic {
    if
    :: FOUND_AS(t,r,a) && (r || a) ->
       give_up(t); row=row&~r; aside=aside&~a
    :: FOUND_AS(t,r,a) && !(r || a) ->                           /* false: it has fired or is gone */
       TOLD = ((fired|taken)&B(t)); assert(TOLD);
       if :: fired&B(t) -> SAW(TOO_LATE) :: else fi
    :: !FOUND_AS(t,r,a) -> goto again
    :: goto stop
    fi;
    if :: goto stop :: goto again fi };
stop: atomic { r=0; a=0; ended++ }
}

#define DIES :: !last -> goto pass
proctype owner(byte o) {
  byte up, at, buckets, timers, b, t, s, l, last; bit once_more;
pass:
  atomic {
    up=0; at=0; timers=0; b=0; t=0; s=0; l=0; once_more=0;
    if
    :: last==PASSES ->
       FIRED = (row==0 && list==0 && (fired|taken|aside)==set && !(fired&taken) && !((fired|taken)&aside));
       assert(FIRED); goto stop
    :: last<PASSES && o==0 && now==MAXNOW && ended==NS+NK+NH+1 -> last++
    :: last==0 && (o!=0 || now<MAXNOW || ended<NS+NK+NH+1)
    :: o!=0 -> goto stop
    fi;
    clock(up,last); buckets=list };
bucket:
  atomic {
    do :: b<NB && !(buckets&B(b)) -> b++ :: else -> break od;
    if :: b==NB -> goto pass :: else -> t=0; timers=row&in[b] fi };
timer:
  atomic {
    s=0; l=0; at=0; once_more=0;
    do :: t<NT && !(timers&B(t)) -> t++ :: else -> break od;
    if
    :: t<NT && due[t]>up -> b++; goto bucket                     /* nor is any behind it */
    :: t<NT && due[t]<=up
    :: t==NT -> goto close
    DIES
    fi };
try:
  atomic {
    clock(at,last);
    if
    :: (row&B(t))==0 || !DUE(t,at) ->
#ifdef REACH
       if :: once_more && (fired&B(t)) -> SAW(AGAIN) :: else fi;
#endif
       t++; goto timer
    :: (row&B(t)) && DUE(t,at) -> s=(once_more -> slot&B(t) : 0)     /* at first it is taken to be free */
    DIES
    fi };
#ifdef CHAIN
  atomic { if :: NEXT(t) -> l=list&B(bk[1]) :: else fi };
#endif
  atomic {
    if
    :: THERE(t) && SLOT_AS(t,s) && (!NEXT(t) || LIST_AS(1,l)) ->
       fire(t,s,l);
#ifndef NOTAKE         /* mutation: the timer stays, and its id is not taken */
       row=row&~B(t);
#endif
       listed_here();
       if :: t++; goto timer :: once_more=1; goto try fi         /* the answer, or none */
    :: !(THERE(t) && SLOT_AS(t,s) && (!NEXT(t) || LIST_AS(1,l))) ->
#ifdef REACH
       if :: (fired&B(t)) -> SAW(REFUSED) :: else fi;
#endif
       once_more=1; goto try
    :: POISON&B(t) -> at=0; s=0; l=0; once_more=0
    DIES
    fi };
failed:
  atomic { if :: row&B(t) :: !(row&B(t)) -> t++; goto timer DIES fi };
  atomic {
    if
    :: row&B(t) ->
#ifndef STAYS          /* mutation: it stays in its bucket, too */
       row=row&~B(t);
#endif
#ifndef FORGETS        /* mutation: it is taken from its bucket and put nowhere */
       aside=aside|B(t);
#endif
       if :: t++; goto timer :: goto failed fi
    :: !(row&B(t)) -> goto failed
    DIES
    fi };
close:
  atomic {
    if
#ifdef ANYTIME         /* a bucket that is empty may go before its minute is over */
    :: (row&in[b])!=0 -> b++; goto bucket
    :: (row&in[b])==0
#else
    :: over[b]>up || (row&in[b])!=0 -> b++; goto bucket
    :: over[b]<=up && (row&in[b])==0
#endif
    DIES
    fi };
  atomic {
    if
    :: EMPTY(b) -> list=list&~B(b); SAW(CLOSED); close_here();
       if :: b++; goto bucket :: goto close fi
    :: !EMPTY(b) -> goto close
    DIES
    fi };
stop: atomic { up=0; buckets=0; last=0; ended++ }
}
