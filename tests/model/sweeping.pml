/* sweeping.pml - the sweeper: nothing stays pending behind it, and a done mark means that all is in place.
 *
 * A sweeper follows the change feed of the primaries and of the rows: an item comes (again) after each of its changes. It
 * resolves an intent through its primary; the participants of a committed primary without a done mark it finalises, and marks
 * the primary done after the ANSWERS of all. -DNOMARK: there is no mark, and primaries are not followed. What cannot be resolved yet (the lease has not expired, an answer is missing) is not
 * passed. Its place in the feed is stored after the work: a sweeper that dies and comes back is one that looks again.
 *
 * Requests, owners and bystanders are those of row_images.pml: one write = one atomic step, whatever was sent may arrive
 * at any later time any number of times, an owner may stop anywhere. Both transactions write both rows; the primary of
 * each is its own slot. `passed` holds, per sweeper, the items that have not changed since it resolved them.
 */
#define OPEN 0
#define VOID 1
#define COMM 2
#define NR 2
#define NO 2
#define B(a) (1<<(a))
#define PRIMARY(a) (NR+(a))
#define ALL_ITEMS 15
#ifdef NOROWS          /* mutation: the sweeper follows the primaries only */
#define WATCHED 12
#elif defined(NOMARK)  /* what is left shows up in the changes of the rows themselves */
#define WATCHED 3
#else
#define WATCHED ALL_ITEMS
#endif
#ifndef NS
#define NS 2           /* sweepers */
#endif

typedef Row { byte val; byte it };              /* val: whose image is in place (command + 1; also its _rev); it: whose intent */
Row row[NR];
byte p[NO];
byte done;                                      /* primaries with a done mark */
byte seen[NO*NR];                               /* the _rev that the owner read */
byte sent, com, sawC, sawA;                     /* as in row_images.pml */
byte passed[NS], mark[NS];                      /* mark: items that have not changed since the sweeper read them */
byte gC, gAck, gTold, gval[NR];                 /* ghosts */
byte gLaid[NO];                                 /* ghost: rows where its image got into place */
hidden byte x;
hidden byte IMAGE, HELD, ACKED, TOLD, DONE, QUIET;

#ifdef NOMARK
#define MARKED true
#else
#define MARKED ((gC & done)==gC)
#endif
inline check() { d_step {
  x=0;
  do
  :: x<NR ->
     IMAGE = (((row[x].it && (gC & B(row[x].it-1))) -> row[x].it : row[x].val)==gval[x]);
     assert(IMAGE); x++                                         /* what resolving shows is what was committed */
  :: else -> break
  od; x=0;
  do
  :: x<NO -> DONE = (!(done & B(x)) || ((gC & B(x)) && gLaid[x]==B(NR)-1)); assert(DONE); x++   /* all is in place */
  :: else -> break
  od; x=0;
  do
  :: x<NS ->                                                    /* behind a sweeper nothing is left */
     QUIET = ((passed[x]&WATCHED)!=WATCHED || (row[0].it==0 && row[1].it==0 && MARKED)); assert(QUIET); x++
  :: else -> break
  od; x=0;
  ACKED = ((gAck & gC)==gAck); assert(ACKED);
  TOLD = ((gTold & gC)==0); assert(TOLD) } }

#ifdef ONCE            /* mutation: the feed keeps the place of an item's first change */
byte known;
#define COMES(j) !(known & B(j))
#else
#define COMES(j) true
#endif
inline changed(j) {                                             /* the item comes again in every feed */
  if
  :: COMES(j) ->
     passed[0]=passed[0]&(ALL_ITEMS-B(j)); mark[0]=mark[0]&(ALL_ITEMS-B(j));
     if :: NS>1 -> passed[NS-1]=passed[NS-1]&(ALL_ITEMS-B(j)); mark[NS-1]=mark[NS-1]&(ALL_ITEMS-B(j)) :: else fi
  :: else
  fi;
#ifdef ONCE
  known=known|B(j)
#endif
}
#define CANPREP(a,r) (row[r].it==0 && row[r].val==seen[(a)*NR+(r)])
inline do_prepare(a,r) { row[r].it=a+1; changed(r); check() }
inline do_commit(a) {
  HELD = (row[0].it==a+1 && row[1].it==a+1); assert(HELD);
  gval[0]=a+1; gval[1]=a+1; p[a]=COMM; gC=gC|B(a); changed(PRIMARY(a)); check() }
inline do_fence(a) { p[a]=VOID; changed(PRIMARY(a)); check() }
inline do_finalise(a,r) {                                       /* a refusal is an answer too: it is in place already */
  if :: row[r].it==a+1 -> row[r].val=a+1; row[r].it=0; gLaid[a]=gLaid[a]|B(r); changed(r) :: else fi; check() }
inline do_undo(a,r) { if :: row[r].it==a+1 -> row[r].it=0; changed(r) :: else fi; check() }
inline do_done(a) { if :: !(done & B(a)) -> done=done|B(a); changed(PRIMARY(a)) :: else fi; check() }

proctype owner(byte a) {
  bit r, ok;
  atomic { row[0].it==0 -> seen[a*NR]=row[0].val };
  atomic { row[1].it==0 -> seen[a*NR+1]=row[1].val };
  sent=sent|B(a);
  do
  :: atomic {
       if
       :: row[r].it==a+1 -> skip
       :: CANPREP(a,r) -> do_prepare(a,r)
       :: else -> r=0; goto aborted
       fi;
       if :: r==0 -> r=1 :: else -> r=0; break fi }
  od;
  com=com|B(a);
  if
  :: atomic { p[a]==OPEN -> do_commit(a); ok=1 }
  :: ok=0                                                       /* refused, or the answer got lost */
  fi;
  if :: ok -> skip
  :: else ->
     atomic { if :: p[a]==COMM -> skip :: p[a]==OPEN -> do_fence(a); goto aborted :: p[a]==VOID -> goto aborted fi }
  fi;
  atomic { gAck=gAck|B(a); sawC=sawC|B(a); check() };
  do                                                            /* finalise; then the done mark */
  :: atomic {
       if
       :: do_finalise(a,r)
       :: goto stop                                             /* no answer: the sweeper will see to it */
#ifdef OWNEREARLY      /* mutation: the owner marks it done when the finalises are on their way */
       :: skip
#endif
       fi;
       if :: r==0 -> r=1 :: else -> r=0; break fi }
  od;
#ifndef NOMARK
  atomic { do_done(a) };
#endif
  goto stop;
aborted:
  atomic { gTold=gTold|B(a); sawA=sawA|B(a); check() };
stop: skip
}

#define CAN(c,what) :: atomic { (c) -> what }
#define PER_ROW(a,r) \
  CAN((sent&B(a)) && CANPREP(a,r), do_prepare(a,r)) \
  CAN((sawC&B(a)) && row[r].it==a+1, do_finalise(a,r)) \
  CAN((sawA&B(a)) && row[r].it==a+1, do_undo(a,r))
#define ALL(a) PER_ROW(a,0) PER_ROW(a,1) CAN((com&B(a)) && p[a]==OPEN, do_commit(a))
proctype world() {
end:
  do
  ALL(0)
  ALL(1)
  od
}

#define PICK(j) :: !(passed[w]&B(j)) -> i=j
proctype sweeper(byte w) {
  byte i, b; bit r;
end:
  do
  :: atomic { (passed[w]&WATCHED)!=WATCHED ->                   /* the next change */
       if
#ifndef NOROWS
       PICK(0)
       PICK(1)
#endif
#ifndef NOMARK
       PICK(2)
       PICK(3)
#endif
       fi;
       mark[w]=mark[w]|B(i);
       if
       :: i<NR -> b=row[i].it
       :: else -> b=((p[i-NR]==COMM && !(done&B(i-NR))) -> i-NR+1 : 0)
       fi;
#ifdef EARLYPLACE      /* mutation: its place in the feed is stored before the work */
       passed[w]=passed[w]|B(i); check()
#endif
     };
     if
     :: atomic { b==0 -> skip }
     :: atomic { b && i<NR ->
          if
          :: p[b-1]==COMM -> sawC=sawC|B(b-1)
          :: p[b-1]==VOID -> sawA=sawA|B(b-1)
#ifdef SKIPS           /* mutation: what has not expired is passed */
          :: p[b-1]==OPEN -> goto pass
#endif
#ifdef NOFENCE         /* mutation: an expired transaction is undone without a fence */
          :: p[b-1]==OPEN -> sawA=sawA|B(b-1)
#else
          :: p[b-1]==OPEN -> do_fence(b-1); sawA=sawA|B(b-1)
#endif
          :: p[b-1]==OPEN -> goto again                         /* not yet expired: wait here */
          fi };
        if
        :: atomic { (sawC&B(b-1)) -> do_finalise(b-1,i) }
        :: atomic { (sawA&B(b-1)) -> do_undo(b-1,i) }
        :: goto again                                           /* no answer */
        fi
     :: atomic { b && i>=NR -> sawC=sawC|B(b-1) };
        do
        :: atomic {
             if
             :: do_finalise(b-1,r)
#ifdef EARLYDONE       /* mutation: the done mark follows the requests, not their answers */
             :: skip
#else
             :: goto again                                      /* no answer: all once more */
#endif
             fi;
             if :: r==0 -> r=1 :: else -> r=0; break fi }
        od;
        if
        :: atomic { do_done(b-1) }
        :: goto again                                           /* no answer to the done mark, or it died */
        fi
     fi;
pass: atomic { passed[w]=passed[w]|(mark[w]&B(i)); check() };
again: atomic { mark[w]=0; i=0; b=0; r=0 }
  od
}

init { atomic {
  passed[0]=ALL_ITEMS; passed[NS-1]=ALL_ITEMS;
  run owner(0); run world(); run sweeper(0);
#ifndef ALONE          /* one transaction only, to have room for a second sweeper */
  run owner(1);
#endif
#if NS>1
  run sweeper(1);
#endif
  skip } }
#ifdef REACH           /* not vacuous: this must be violated */
active proctype reach() { assert(!(REACH)) }
#endif
